"""Prometheus that is down, slow, stale or something else: always told, never raised."""

import json
import time

import pytest
from live_pages import NOBODY, configuration_of
from page_server import Page, captured, serving

from stack.local.reading import bounded_session, history
from stack.local.reading.history import NoPast, Past, Prometheus
from stack.snapshot import Signal
from stack.window import snapshot_of

NOW_S = 1_800_000_000.0


def answer(*series: tuple[dict[str, str], list[list[object]]]) -> Page:
    result = [{"metric": labels, "values": values} for labels, values in series]
    body = {"status": "success", "data": {"resultType": "matrix", "result": result}}
    return Page((json.dumps(body).encode(),))


def running(instance: str, *samples: tuple[float, str], metric: str = "num_requests_running"):
    labels = {"__name__": f"vllm:{metric}", "instance": instance, "job": "x", "engine": "0"}
    return labels, [[time_s, value] for time_s, value in samples]


def asked(tmp_path, page: Page) -> Past | NoPast:
    with serving({"/api/v1/query": lambda: page}) as server:
        configuration = configuration_of(tmp_path, "http://127.0.0.1:1", "http://127.0.0.1:2", NOBODY, server.url)
        prometheus = Prometheus(configuration)
        try:
            return prometheus.window(60.0, NOW_S, 6.0)
        finally:
            prometheus.close()


def test_samples_keep_the_times_of_their_scrapes(tmp_path):
    past = asked(
        tmp_path,
        answer(running("r1", (NOW_S - 4.0, "3"), (NOW_S - 2.0, "5")), running("127.0.0.1:2", (NOW_S - 1.5, "7"))),
    )
    assert isinstance(past, Past)
    snapshot = snapshot_of(past.readings, window_s=60.0, now_s=NOW_S)
    first = snapshot.fact(Signal.RUNNING, "r1")
    assert first is not None
    assert (first.value, first.start, first.age_s) == (5.0, 3.0, 2.0)
    assert snapshot.value(Signal.RUNNING, "r2") == 7.0
    assert "job" not in snapshot.configuration["r1"]


def test_nan_and_infinity_are_numbers_on_the_wire(tmp_path):
    times = (NOW_S - 4.0, NOW_S - 2.0, NOW_S - 1.0)
    odd = running("r1", *zip(times, ("NaN", "+Inf", "2"), strict=True))
    sound = running("r1", *((time_s, "1") for time_s in times), metric="num_requests_waiting")
    past = asked(tmp_path, answer(odd, sound))
    assert isinstance(past, Past)
    said = [warning for reading in past.readings for warning in reading.warnings]
    assert ["is NaN" in said[0], "is infinite" in said[1]] == [True, True]
    assert snapshot_of(past.readings, window_s=60.0).value(Signal.RUNNING, "r1") == 2.0


def test_a_long_range_is_thinned_and_keeps_its_newest_scrape(tmp_path):
    samples = [(NOW_S - 60.0 + 0.1 * place, "1") for place in range(600)]
    past = asked(tmp_path, answer(running("r1", *samples)))
    assert isinstance(past, Past)
    assert 100 < len(past.readings) <= history.MOST_SCRAPES
    assert past.readings[-1].time_s == samples[-1][0]


@pytest.mark.parametrize(
    ("page", "words"),
    [
        (answer(running("r1", (NOW_S - 20.0, "3"))), "20 s old"),
        (answer(), "no sample"),
        (answer(running("stranger", (NOW_S - 1.0, "3"))), "not Prometheus"),
        (Page((captured("steady_c4"),)), "not Prometheus"),
        (Page((b'{"data": {"result": "many"}}',)), "not Prometheus"),
        (Page((b"[]",)), "not Prometheus"),
        (Page((b"",), 404), "refused the query"),
        (Page((b"{}",), 503), "refused the query"),
    ],
    ids=["stale", "empty", "strangers", "text", "wrong type", "a list", "404", "503"],
)
def test_a_past_that_cannot_be_used_is_told_with_its_reason(tmp_path, page, words):
    past = asked(tmp_path, page)
    assert isinstance(past, NoPast)
    assert words in past.reason
    assert "http://127.0.0.1" in past.reason


def test_nobody_there_is_told_at_once(tmp_path):
    began_s = time.monotonic()
    past = Prometheus(configuration_of(tmp_path, NOBODY, "http://127.0.0.1:2", NOBODY + "0", "http://127.0.0.1:7"))
    assert past.window(60.0, NOW_S, 6.0) == NoPast("http://127.0.0.1:7: no connection")
    assert time.monotonic() - began_s < 2.0


@pytest.mark.parametrize(
    ("page", "words"),
    [
        (Page((b"x",), pause_s=3.0), "no answer within 1 s"),
        (Page((b"x",) * 60, pause_s=0.1), "within 1 s"),
        (Page((b"x" * 3000,) * 2), "more than 5000 bytes"),
    ],
    ids=["silent", "dripping", "huge"],
)
def test_what_never_ends_is_cut_off(tmp_path, monkeypatch, page, words):
    monkeypatch.setattr(history, "SILENCE_S", 1)
    monkeypatch.setattr(history, "TOTAL_S", 1.0)
    monkeypatch.setattr(history, "MOST_BYTES", 5000)
    began_s = time.monotonic()
    past = asked(tmp_path, page)
    assert isinstance(past, NoPast)
    assert words in past.reason
    assert time.monotonic() - began_s < 4.0


def test_a_session_reads_whole_answers():
    with serving({"/x": lambda: Page((b"a" * 70_000, b"b" * 70_000))}) as server:
        session = bounded_session.BoundedSession(total_s=5.0, most_bytes=1_000_000)
        assert session.get(f"{server.url}/x", timeout=5).content == b"a" * 70_000 + b"b" * 70_000
        session.close()
