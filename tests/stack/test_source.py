"""What the diagnose command can be pointed at."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from stack.errors import InputError, UnreachableError
from stack.recorded import ReplayClock
from stack.snapshot import Signal
from stack.source import snapshot_from

DATA = Path(__file__).parents[1] / "data"
LINE = (
    "INFO {time} [loggers.py] Engine 000: Avg prompt throughput: 10.0 tokens/s, "
    "Avg generation throughput: 4.0 tokens/s, Running: 4 reqs, Waiting: {waiting} reqs, "
    "GPU KV cache usage: 50.0%, Prefix cache hit rate: 25.0%\n"
)


def data(*names: str) -> list[str]:
    return [str(DATA / f"{name}.prom") for name in names]


def test_files_have_a_window_only_with_an_interval():
    files = data("kvfull_preempt_drain", "kvfull_preempt")
    assert snapshot_from(files).window_s is None
    snapshot = snapshot_from(files, interval_s=4.0)
    assert snapshot.window_s == 4.0
    assert snapshot.per_s(Signal.PREEMPTIONS) == pytest.approx(9 / 4)
    usage = snapshot.fact(Signal.KV_USAGE_RATIO)
    assert usage is not None
    assert usage.trend_per_min == pytest.approx((1.0 - 0.8354) * 15, abs=0.01)
    assert snapshot.time_s is None
    assert usage.age_s is None


def test_three_files_span_two_intervals():
    files = data("kvfull_preempt_drain", "kvfull_preempt", "saturated_queue")
    snapshot = snapshot_from(files, interval_s=10.0)
    assert (snapshot.window_s, snapshot.scrapes) == (20.0, 3)
    fact = snapshot.fact(Signal.PREEMPTIONS)
    assert fact is not None
    assert (fact.value, fact.start) == (32, 9)


def test_healthy_files_have_no_warning():
    for names in (["idle_tiny"], ["idle_allflags"], ["steady_c4"], ["steady_c4", "prefix_hit"]):
        assert snapshot_from(data(*names)).warnings == ()


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["kvfull_preempt", "kvfull_preempt_drain"], ["kvfull_preempt_drain.prom", "went down from", "time order"]),
        (["steady_c4", "kvfull_preempt"], ["holds smolkv/0", "same servers"]),
        (["steady_c4", "spec_ngram"], ["started at", "different servers"]),
        (["steady_c4", "haproxy_exporter"], ["same servers"]),
        (["steady_c4", "steady_c4"], ["given twice"]),
    ],
)
def test_files_that_are_no_sequence_are_refused(names, words):
    with pytest.raises(InputError) as caught:
        snapshot_from(data(*names))
    for word in words:
        assert word in str(caught.value)


def test_bad_files_are_refused_by_name(tmp_path):
    contents = {
        "empty": b"",
        "blank": b"\n \n",
        "binary": b"\x7fELF\x00\xff\xfe",
        "zero": b"up 1\x00",
        "prose": b"hello there\n",
    }
    for name, content in contents.items():
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(InputError, match=name):
            snapshot_from([str(path)])
    with pytest.raises(InputError, match="No such file"):
        snapshot_from([str(tmp_path / "absent.prom")])
    with pytest.raises(InputError, match=r"incident\.toml"):
        snapshot_from([str(tmp_path)])


@pytest.mark.parametrize("interval_s", [0.0, -1.0, float("nan"), float("inf")])
def test_the_interval_must_be_a_length(interval_s):
    with pytest.raises(InputError, match="interval"):
        snapshot_from(data("steady_c4"), interval_s=interval_s)


def test_kinds_do_not_mix(tmp_path):
    log = tmp_path / "engine.log"
    log.write_text(LINE.format(time="03-17 15:38:10", waiting=1))
    with pytest.raises(InputError, match="cannot be mixed"):
        snapshot_from([str(log), *data("steady_c4")])
    with pytest.raises(InputError, match="cannot be mixed"):
        snapshot_from(["http://127.0.0.1:9/metrics", *data("steady_c4")])
    with pytest.raises(InputError, match="no source"):
        snapshot_from([])


def test_logs_that_follow_one_another_are_one_engine(tmp_path):
    for name, times in (
        ("a.log", ("12-31 23:59:40", "12-31 23:59:50")),
        ("b.log", ("01-01 00:00:00", "01-01 00:00:10")),
    ):
        (tmp_path / name).write_text("".join(LINE.format(time=time, waiting=2) for time in times))
    snapshot = snapshot_from([str(tmp_path / "a.log"), str(tmp_path / "b.log")])
    assert (list(snapshot.replicas), snapshot.window_s, snapshot.scrapes) == (["engine/000"], 30.0, 4)
    assert snapshot.time_s is None


def test_logs_of_the_same_hours_are_several_engines(tmp_path):
    for name, waiting in (("a", 2), ("b", 5)):
        lines = (LINE.format(time=time, waiting=waiting) for time in ("03-17 15:38:10", "03-17 15:38:20"))
        (tmp_path / f"{name}.log").write_text("".join(lines))
    snapshot = snapshot_from([str(tmp_path / "a.log"), str(tmp_path / "b.log")])
    assert set(snapshot.replicas) == {"a", "b"}
    assert snapshot.value(Signal.WAITING) == 7


class Pages:
    """An HTTP server that answers each request with the next page, and the last one for ever."""

    def __init__(self) -> None:
        self.pages: list[tuple[int, bytes]] = []
        pages = self.pages

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                status, body = pages.pop(0) if len(pages) > 1 else pages[0]
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                return

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}/metrics"


@pytest.fixture
def pages() -> Iterator[Pages]:
    served = Pages()
    thread = threading.Thread(target=served.server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield served
    served.server.shutdown()
    thread.join()
    served.server.server_close()


def test_an_address_is_scraped_twice(pages):
    pages.pages += [(200, Path(name).read_bytes()) for name in data("kvfull_preempt_drain", "kvfull_preempt")]
    snapshot = snapshot_from([pages.address], interval_s=4.0, clock=ReplayClock(1000.0))
    (replica,) = snapshot.replicas
    assert replica == pages.address.removeprefix("http://").removesuffix("/metrics")
    assert (snapshot.window_s, snapshot.scrapes, snapshot.time_s) == (4.0, 2, 1004.0)
    assert snapshot.value(Signal.PREEMPTIONS) == 9


def test_a_restart_between_two_scrapes_is_a_warning_not_a_negative_rate(pages):
    pages.pages += [(200, Path(name).read_bytes()) for name in data("kvfull_preempt", "kvfull_preempt_drain")]
    snapshot = snapshot_from([pages.address], interval_s=1.0, clock=ReplayClock(0.0))
    assert snapshot.value(Signal.PREEMPTIONS) is None
    assert "began anew" in snapshot.warnings[0]
    assert snapshot.value(Signal.RUNNING) == 8


@pytest.mark.parametrize(
    ("status", "body", "word"), [(404, b"no", "404"), (200, b"", "empty"), (200, b"<html>", "line 1")]
)
def test_a_useless_answer_is_refused(pages, status, body, word):
    pages.pages.append((status, body))
    with pytest.raises(InputError, match=word):
        snapshot_from([pages.address], interval_s=1.0, clock=ReplayClock(0.0))


def test_nobody_there_is_unreachable():
    with pytest.raises(UnreachableError, match=r"127\.0\.0\.1:9"):
        snapshot_from(["http://127.0.0.1:9/metrics"], interval_s=1.0, clock=ReplayClock(0.0))


@pytest.mark.parametrize("address", ["http://", "http://[::bad/metrics", "https://:99999/metrics"])
def test_a_malformed_address_is_bad_input(address):
    with pytest.raises((InputError, UnreachableError)) as caught:
        snapshot_from([address], interval_s=1.0, clock=ReplayClock(0.0))
    assert address in str(caught.value)
