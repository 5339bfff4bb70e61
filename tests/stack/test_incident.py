"""Incident folders: written, read, replayed, and refused with the place of the mistake."""

import gzip
import json
from pathlib import Path

import pytest

from stack.errors import InputError, RefusedError, UnknownSettingError, UnreachableError
from stack.incident import ActionPattern, Incident, Truth, read_incident, write_incident
from stack.layer import Layer
from stack.reading import GATEWAY, Counter, Gauge, Reading, View
from stack.recorded import replay_of
from stack.recording import read_recording, write_recording
from stack.snapshot import Signal
from stack.source import snapshot_from

INCIDENT = Incident(
    title='Queue behind a "small" cap',
    provenance="made for this test",
    question="why is TTFT high?",
    stack={"model": "m", "replicas": 2, "speculation": False, "gpu_memory_utilization": 0.9},
    truth=Truth(
        layer=Layer.BATCHING,
        cause="cap_too_small",
        tunable=True,
        good_actions=(ActionPattern(setting="running_request_cap", direction="raise"),),
        harmful_actions=(ActionPattern(setting="routing_weight", direction="lower", target="r1"),),
    ),
)
SETTINGS = {"running_request_cap": {"r1": 16.0, "r2": 16.0}, "routing_policy": {"fleet": "round_robin"}}


def readings() -> list[Reading]:
    found = []
    for place in range(5):
        time_s = 1000.0 + 15 * place
        for name in ("r1", "r2"):
            gauges = {Gauge.RUNNING: 16.0, Gauge.WAITING: 10.0 * place}
            found.append(Reading(name, time_s, gauges, {Counter.FINISHED: 20.0 * place}))
        found.append(
            Reading(GATEWAY, time_s, {Gauge.GATEWAY_QUEUE: 2.0}, {Counter.SHED: 1.0 * place}, view=View.GATEWAY)
        )
    return found


@pytest.fixture
def folder(tmp_path) -> Path:
    write_incident(tmp_path, INCIDENT)
    write_recording(tmp_path, readings(), SETTINGS)
    return tmp_path


def test_what_was_written_is_read(folder):
    assert read_incident(folder) == INCIDENT
    recording = read_recording(folder)
    assert recording.settings == SETTINGS
    assert [(one.replica, one.time_s, one.gauges, one.counters) for one in recording.readings] == [
        (one.replica, one.time_s, one.gauges, one.counters) for one in readings()
    ]


def test_plain_and_packed_samples_read_alike(folder):
    packed = read_recording(folder)
    lines = gzip.decompress((folder / "samples.jsonl.gz").read_bytes())
    (folder / "samples.jsonl").write_bytes(lines)
    with pytest.raises(InputError, match="found 2"):
        read_recording(folder)
    (folder / "samples.jsonl.gz").unlink()
    assert [one.gauges for one in read_recording(folder).readings] == [one.gauges for one in packed.readings]


def test_diagnose_reads_the_folder(folder):
    snapshot = snapshot_from([str(folder)])
    assert (snapshot.window_s, snapshot.scrapes, snapshot.time_s) == (60.0, 5, 1060.0)
    assert snapshot.value(Signal.WAITING) == 80
    assert snapshot.settings["running_request_cap"] == {"r1": 16.0, "r2": 16.0}


def test_the_incident_can_name_its_window(folder):
    write_incident(folder, INCIDENT.model_copy(update={"window_s": 30.0}))
    assert snapshot_from([str(folder)]).window_s == 30.0


def test_replay_sees_only_what_has_happened_yet(folder):
    replay = replay_of(folder, at_start=True)
    replay.clock.sleep(31.0)
    snapshot = replay.reader.snapshot(60.0)
    waiting = snapshot.fact(Signal.WAITING, "r1")
    assert waiting is not None
    assert (waiting.value, waiting.start, waiting.age_s) == (20.0, 0.0, 1.0)
    replay.clock.sleep(10_000.0)
    with pytest.raises(UnreachableError, match="no sample"):
        replay.reader.snapshot(60.0)


def test_a_recording_notes_writes_and_refuses_them(folder):
    replay = replay_of(folder)
    assert replay.control.read("running_request_cap", "r1") == 16.0
    assert replay.control.read("routing_policy", "r2") == "round_robin"
    with pytest.raises(RefusedError) as caught:
        replay.control.write("running_request_cap", "r1", 32.0)
    assert caught.value.holds == 16.0
    assert replay.control.read("running_request_cap", "r1") == 16.0
    (proposal,) = replay.control.proposals
    assert (proposal.setting, proposal.target, proposal.value, proposal.time_s) == (
        "running_request_cap",
        "r1",
        32.0,
        1060.0,
    )
    for setting, target in (("no_such", "r1"), ("running_request_cap", "r9")):
        with pytest.raises(UnknownSettingError):
            replay.control.read(setting, target)


def test_the_reader_holds_nothing_of_the_truth(folder):
    replay = replay_of(folder)
    seen = [vars(replay.reader), vars(replay.control), replay.reader.snapshot(60.0)]
    assert INCIDENT.truth.cause not in repr(seen)
    assert INCIDENT.title not in repr(seen)


def test_nan_was_recorded_as_nothing_and_is_named(folder):
    lines = [
        json.dumps({"time_s": time_s, "target": "r1", "metric": metric, "labels": {}, "value": value})
        for time_s in (0.0, 15.0)
        for metric, value in (("vllm:num_requests_running", 3), ("vllm:kv_cache_usage_perc", None))
    ]
    (folder / "samples.jsonl.gz").unlink()
    (folder / "samples.jsonl").write_text("\n".join(lines))
    snapshot = snapshot_from([str(folder)])
    assert snapshot.value(Signal.RUNNING) == 3
    assert snapshot.value(Signal.KV_USAGE_RATIO) is None
    assert any("NaN" in warning for warning in snapshot.warnings)


GOOD = {"time_s": 5.0, "target": "r1", "metric": "vllm:num_requests_running", "labels": {}, "value": 1.0}


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([], ["no sample"]),
        ([GOOD, {**GOOD, "time_s": 4.0}], ["line 2", "time order"]),
        ([GOOD, GOOD], ["line 2", "line 1"]),
        ([{**GOOD, "value": "x"}], ["line 1", "value"]),
        ([{**GOOD, "extra": 1}], ["line 1", "extra"]),
        ([{name: value for name, value in GOOD.items() if name != "target"}], ["line 1", "target"]),
        ([GOOD, "{broken"], ["line 2", "JSON"]),
    ],
)
def test_bad_samples_are_refused_with_their_line(folder, lines, words):
    (folder / "samples.jsonl.gz").unlink()
    (folder / "samples.jsonl").write_text(
        "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    )
    with pytest.raises(InputError) as caught:
        read_recording(folder)
    assert "samples.jsonl" in str(caught.value)
    assert "\n" not in str(caught.value)
    for word in words:
        assert word in str(caught.value)


def test_a_cut_off_archive_is_refused(folder):
    path = folder / "samples.jsonl.gz"
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(InputError, match=r"samples\.jsonl\.gz"):
        read_recording(folder)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("not json", "JSON"),
        ('{"no_such": {"r1": 1}}', "no_such"),
        ('{"running_request_cap": {"r1": -4}}', "must lie in"),
        ('{"routing_policy": {"fleet": "guess"}}', "must be one of"),
    ],
)
def test_bad_settings_are_refused(folder, text, word):
    (folder / "settings.json").write_text(text)
    with pytest.raises(InputError, match=word) as caught:
        read_recording(folder)
    assert "settings.json" in str(caught.value)


@pytest.mark.parametrize("value", ['"30"', "true", "0", "-5.0", "inf", "nan"])
def test_a_window_that_is_none_is_refused(folder, value):
    path = folder / "incident.toml"
    path.write_text(f"window_s = {value}\n{path.read_text()}")
    with pytest.raises(InputError, match=r"incident\.toml: window_s: .*, found "):
        read_recording(folder)


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        ('"batching"', '"engine room"', "truth.layer"),
        ('"running_request_cap"', '"magic"', "no setting"),
        ('"raise"', '"up"', "direction"),
        ("title", "titel", "title"),
        ("[", "[[", "TOML"),
    ],
)
def test_bad_incident_files_are_refused_with_the_field(folder, old, new, word):
    path = folder / "incident.toml"
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(InputError, match=word) as caught:
        read_incident(folder)
    assert "incident.toml" in str(caught.value)
