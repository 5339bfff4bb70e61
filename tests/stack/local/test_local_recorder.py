"""A live stack kept as an incident folder, which everything that reads incidents can read."""

import json
import time

import pytest
from live_pages import NOBODY, LivePages, configuration_of, live_pages
from page_server import Page

from stack.clock import WallClock
from stack.errors import InputError, UnreachableError
from stack.incident import read_incident
from stack.local.reading.recorder import (
    check_free,
    hardware,
    incident_of,
    keep,
    live_readings,
    past_readings,
    settings_in_force,
    stack_facts,
    usual_step_s,
)
from stack.reading import Reading
from stack.recorded import replay_of
from stack.recording import read_recording
from stack.snapshot import Signal
from stack.source import snapshot_from

LIMITS = {
    "limits": {
        "running_request_cap": 16,
        "tokens_per_step": 2048,
        "long_prefill_threshold_tokens": 0,
        "usable_kv_blocks": 60,
        "watermark_blocks": 0,
    },
    "boot": {"usable_kv_blocks": 80},
    "bounds": {
        "running_request_cap": [1, 16],
        "tokens_per_step": [16, 2048],
        "long_prefill_threshold_tokens": [0, 2048],
        "usable_kv_blocks": [8, 80],
    },
    "step": 0,
    "steps": [],
}


def recorded(pages: LivePages) -> list[Reading]:
    pages.r1.pages["/flashvector/steps"] = lambda: Page((json.dumps(LIMITS).encode(),))
    pages.r1.pages["/version"] = lambda: Page((b'{"version": "0.32.0"}',))
    return live_readings(
        pages.configuration,
        WallClock(),
        length_s=30.0,
        step_s=0.2,
        go_on=lambda passed_s: passed_s < 1.0 or pages.r1.calls["/metrics"] < 3,
    )


def test_what_is_recorded_can_be_diagnosed_and_replayed(tmp_path):
    folder = tmp_path / "incident"
    with live_pages(tmp_path) as pages:
        readings = recorded(pages)
        settings = settings_in_force(pages.configuration, readings)
        facts = stack_facts(pages.configuration, readings, 0.2)
        keep(folder, incident_of(pages.configuration, facts, time.time(), "KV full", "why?"), readings, settings)
    snapshot = snapshot_from([str(folder)])
    assert snapshot.value(Signal.PREEMPTIONS, "r1") == 9.0
    assert snapshot.value(Signal.UP, "r2") == 1.0
    assert snapshot.warnings == ()
    assert read_recording(folder).settings == {
        "running_request_cap": {"r1": 16.0},
        "tokens_per_step": {"r1": 2048.0},
        "long_prefill_threshold_tokens": {"r1": 0.0},
        "usable_kv_blocks_ratio": {"r1": 0.75},
        "routing_weight": {"r1": 100.0, "r2": 100.0},
        "replica_concurrency_cap": {"r1": 16.0, "r2": 16.0},
        "replica_state": {"r1": "ready", "r2": "ready"},
        "execution_profile": {"r1": "default", "r2": "default"},
        "worker_generation": {"r1": 0.0, "r2": 0.0},
    }
    assert replay_of(folder).control.read("running_request_cap", "r1") == 16.0
    incident = read_incident(folder)
    assert (incident.title, incident.question, incident.truth.layer) == ("KV full", "why?", None)
    assert incident.stack["engine"] == "vLLM 0.32.0"
    assert incident.stack["replicas"] == 2
    assert incident.stack["hardware"] == hardware()


def test_a_folder_that_holds_an_incident_is_not_overwritten(tmp_path):
    (tmp_path / "incident.toml").write_text("")
    with pytest.raises(InputError, match="already"):
        check_free(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be made"):
        check_free(tmp_path / "file")


def test_a_stack_that_is_not_there_cannot_be_recorded(tmp_path):
    configuration = configuration_of(tmp_path, NOBODY, f"{NOBODY}1", f"{NOBODY}2", "http://127.0.0.1:7")
    with pytest.raises(UnreachableError, match="nothing of the stack answers"):
        live_readings(configuration, WallClock(), length_s=60.0, step_s=5.0, go_on=lambda _: True)
    with pytest.raises(UnreachableError, match="no connection"):
        past_readings(configuration, time.time(), length_s=60.0, step_s=5.0)


@pytest.mark.parametrize(("length_s", "replicas", "step_s"), [(60, 2, 5), (300, 2, 5), (600, 2, 8), (7200, 2, 15)])
def test_the_step_grows_with_the_length(length_s, replicas, step_s):
    assert usual_step_s(length_s, replicas) == step_s
