"""The incidents recorded from a real stack: complete, readable, and each with a truth that says something."""

from pathlib import Path

import pytest

from evals.real_cpu.scenarios import SCENARIOS
from stack.incident import read_incident
from stack.recording import read_recording
from stack.source import snapshot_from

FOLDER = Path(__file__).parents[2] / "evals/incidents/real_cpu"
NAMES = [scenario.name for scenario in SCENARIOS]


def test_every_case_was_recorded_and_nothing_else():
    assert sorted(path.name for path in FOLDER.iterdir() if path.is_dir()) == sorted(NAMES)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=NAMES)
def test_a_recording_holds_its_case(scenario):
    incident, recording = read_incident(FOLDER / scenario.name), read_recording(FOLDER / scenario.name)
    assert incident.truth == scenario.truth
    assert incident.question == scenario.question
    for setting, target, value in scenario.settings:
        assert recording.settings[setting][target] == value
    snapshot = snapshot_from([str(FOLDER / scenario.name)])
    assert set(snapshot.replicas) >= {"r1", "r2"}
    assert snapshot.fleet
