"""A recorded incident through the loop: it is diagnosed, proposals are shadowed, nothing is written."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from stack.incident import Incident, Truth, write_incident
from stack.layer import Layer
from stack.recording import write_recording
from stack.simulator.faults.fault import parse_fault
from stack.simulator.fleet import FleetSpec
from stack.simulator.load.generated import steady
from stack.simulator.simulation import Simulation


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Nine minutes of a fleet of which one replica becomes slow after three."""
    folder = tmp_path_factory.mktemp("incident")
    simulation = Simulation(FleetSpec(), steady(48, 560, seed=5), faults=(parse_fault("slow_replica:1@180"),), seed=5)
    readings = []
    for step in range(1, 109):
        simulation.advance(5.0 * step)
        readings += simulation.readings()
    write_recording(folder, readings, simulation.settings())
    truth = Truth(layer=Layer.ROUTING, cause="slow_replica", tunable=True)
    write_incident(folder, Incident(title="t", provenance="simulated", question="why is P99 high?", truth=truth))
    return folder


def flashvector(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("flashvector")), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)


def test_diagnose_reads_the_folder(folder):
    report = json.loads(flashvector("diagnose", "--json", str(folder)).stdout)
    assert report["findings"][0]["layer"] == "routing"
    assert report["findings"][0]["target"] == "replica-1"


def test_the_loop_replays_it_and_writes_nothing(folder, tmp_path):
    out = tmp_path / "out.json"
    result = flashvector("run", "--stack", str(folder), "--minutes", "9", "--mode", "auto", "--json", str(out))
    assert result.returncode == 0, result.stderr
    report = json.loads(out.read_text())
    assert report["episodes"] == []
    assert {"slow_replica"} <= {one["cause"] for one in report["seen"]}
    assert report["proposals"], report["seen"]
    assert {one["state"] for one in report["proposals"]} == {"shadowed"}
    assert report["proposals"][0]["target"] == "replica-1"


def test_a_folder_that_is_no_incident_is_named(tmp_path):
    result = flashvector("run", "--stack", str(tmp_path))
    assert result.returncode == 2
    assert str(tmp_path) in result.stderr
