"""What Prometheus is told to scrape, and that a real one does and gives it back."""

import json
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from live_pages import LivePages, ShiftedClock, configuration_of, live_pages

from stack.errors import InputError
from stack.local.configuration import LocalStack
from stack.local.reading.history import Past, Prometheus
from stack.local.reading.prometheus_files import command, write_files
from stack.local.reading.reader import LocalReader
from stack.local.reading.recorder import past_readings
from stack.local.reading.values import InForce
from stack.reading import GATEWAY
from stack.snapshot import Signal, Snapshot
from stack.window import snapshot_of

R1, R2, EXPORTER, HISTORY = (f"http://127.0.0.1:{port}" for port in (8511, 8512, 8513, 8514))


def test_every_replica_is_scraped_under_its_name(tmp_path):
    configuration = configuration_of(tmp_path, R1, R2, EXPORTER, HISTORY, interval_s=2.5)
    path = write_files(configuration)
    assert path == tmp_path / "prometheus" / "prometheus.yml"
    document = json.loads(path.read_text())
    assert document["global"] == {"scrape_interval": "2500ms", "scrape_timeout": "2500ms"}
    targets = [target for job in document["scrape_configs"] for target in job["static_configs"]]
    assert [(target["targets"], target["labels"]["instance"]) for target in targets] == [
        (["127.0.0.1:8511"], "r1"),
        (["127.0.0.1:8512"], "r2"),
        (["127.0.0.1:8513"], GATEWAY),
    ]
    assert write_files(configuration).read_text() == path.read_text()


def test_the_command_names_what_was_written(tmp_path):
    program, *arguments = command(configuration_of(tmp_path, R1, R2, EXPORTER, HISTORY))
    assert program == "prometheus"
    assert f"--config.file={tmp_path}/prometheus/prometheus.yml" in arguments
    assert "--web.listen-address=127.0.0.1:8514" in arguments
    assert "--storage.tsdb.retention.time=1d" in arguments


def test_a_stack_without_history_has_no_prometheus(tmp_path):
    configuration = configuration_of(tmp_path, R1, R2, EXPORTER)
    for make in (write_files, command, Prometheus):
        with pytest.raises(InputError, match=r"stack\.history"):
            make(configuration)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def prometheus(configuration: LocalStack) -> Iterator[subprocess.Popen[bytes]]:
    write_files(configuration)
    process = subprocess.Popen(command(configuration), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(timeout=30)


def until_scraped(pages: LivePages, most: int) -> Past:
    """Waits until every target has as many scrapes in Prometheus."""
    deadline_s, client = time.monotonic() + 60.0, Prometheus(pages.configuration)
    while time.monotonic() < deadline_s:
        past = client.window(60.0, time.time(), 6.0)
        if isinstance(past, Past):
            counts = [sum(one.replica == name for one in past.readings) for name in ("r1", "r2", GATEWAY)]
            if min(counts) >= most and counts[0] >= 2 * most:
                client.close()
                return past
        time.sleep(0.2)
    pytest.fail("Prometheus has not scraped all targets within a minute")


@pytest.mark.real_stack
def test_promtool_accepts_the_file(tmp_path):
    path = write_files(configuration_of(tmp_path, R1, R2, EXPORTER, HISTORY))
    result = subprocess.run(["promtool", "check", "config", path], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


@pytest.mark.real_stack
def test_a_real_prometheus_gives_back_what_the_pages_show(tmp_path):
    with (
        live_pages(tmp_path, history=f"http://127.0.0.1:{free_port()}") as pages,
        prometheus(pages.configuration),
    ):
        past = until_scraped(pages, 4)
        snapshot = snapshot_of(past.readings, window_s=60.0, now_s=time.time())
        recorded = past_readings(pages.configuration, time.time(), length_s=60.0, step_s=0.5)
    assert snapshot.value(Signal.PREEMPTIONS, "r1") == 9.0
    assert snapshot.value(Signal.RUNNING) == 20.0
    assert snapshot.value(Signal.UP) == 2.0
    assert snapshot.configuration["r1"]["block_size"] == "32"
    assert "instance" not in snapshot.configuration["r1"]
    assert snapshot.warnings == ()
    assert {one.replica for one in recorded} == {"r1", "r2", GATEWAY}
    assert len(recorded) < len(past.readings)


@pytest.mark.real_stack
def test_a_prometheus_that_dies_is_replaced_by_own_scrapes(tmp_path):
    with live_pages(tmp_path, history=f"http://127.0.0.1:{free_port()}") as pages:
        clock = ShiftedClock()
        with prometheus(pages.configuration):
            until_scraped(pages, 4)
            reader = LocalReader(pages.configuration, clock, lambda: InForce({}, {}, ()))
            alive = reader.snapshot(60.0)
        try:
            dead = until_windowed(reader)
        finally:
            reader.close()
    assert alive.warnings == ()
    assert dead.value(Signal.RUNNING) == 20.0
    assert "no connection" in dead.warnings[0]


def until_windowed(reader: LocalReader) -> Snapshot:
    deadline_s = time.monotonic() + 30.0
    while time.monotonic() < deadline_s:
        snapshot = reader.snapshot(60.0)
        if snapshot.value(Signal.RUNNING) == 20.0:
            return snapshot
        time.sleep(0.1)
    pytest.fail("own scrapes gave no window within half a minute")


@pytest.mark.real_stack
def test_a_stale_prometheus_is_told(tmp_path):
    with (
        live_pages(tmp_path, history=f"http://127.0.0.1:{free_port()}") as pages,
        prometheus(pages.configuration),
    ):
        until_scraped(pages, 2)
        client = Prometheus(pages.configuration)
        told = client.window(60.0, time.time() + 30.0, 6.0)
        client.close()
    assert "s old" in str(told)
