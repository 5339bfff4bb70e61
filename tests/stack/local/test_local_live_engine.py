"""Reading one real vLLM engine."""

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from live_pages import NOBODY

from stack.clock import WallClock
from stack.local.configuration import LocalStack, read_stack
from stack.local.reading.metric_contract import check
from stack.local.reading.reader import LocalReader
from stack.local.reading.values import InForce
from stack.snapshot import Signal

ROOT = Path(__file__).parents[3]
FILE = ROOT / "deploy" / "local-cpu.toml"


def one_engine(folder: Path) -> LocalStack:
    """The shipped configuration's first replica on a free port, without gateway and history."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{probe.getsockname()[1]}"
    stack = read_stack(FILE)
    replica = stack.replicas[0].model_copy(update={"url": url})
    gateway = stack.gateway.model_copy(update={"metrics_url": NOBODY})
    return stack.model_copy(update={"run_folder": folder, "replicas": (replica,), "gateway": gateway, "history": None})


@contextmanager
def engine(stack: LocalStack) -> Iterator[str]:
    """The replica's engine, ready."""
    replica, environment = stack.replicas[0], {**os.environ, **stack.engine.environment}
    command = [*stack.engine.command, *stack.engine.arguments, "--host", replica.host, "--port", str(replica.port)]
    with (stack.run_folder / "engine.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log, start_new_session=True)
    try:
        wait_until_ready(f"{replica.url}/health", process, stack)
        yield replica.url
    finally:
        process.terminate()
        process.wait(timeout=60)


def wait_until_ready(url: str, process: subprocess.Popen[bytes], stack: LocalStack) -> None:
    deadline_s = time.monotonic() + stack.engine.ready_s
    while time.monotonic() < deadline_s and process.poll() is None:
        try:
            if httpx.get(url, timeout=2.0).status_code == httpx.codes.OK:
                return
        except httpx.HTTPError:
            time.sleep(1.0)
    pytest.fail((stack.run_folder / "engine.log").read_text()[-2000:])


@pytest.mark.real_stack
def test_a_real_engine_keeps_the_contract_and_its_work_is_counted(tmp_path):
    stack = one_engine(tmp_path)
    with engine(stack) as url:
        contract = {one.target: one for one in check(stack, WallClock())}["r1"]
        reader = LocalReader(stack, WallClock(), lambda: InForce({}, {}, ()))
        try:
            reader.snapshot(30.0)
            request = {"model": stack.engine.model, "prompt": "One two", "max_tokens": 16, "ignore_eos": True}
            httpx.post(f"{url}/v1/completions", json=request, timeout=120.0).raise_for_status()
            time.sleep(4.5)
            snapshot = reader.snapshot(60.0)
        finally:
            reader.close()
    assert contract.found.startswith("vLLM 0.32")
    assert "plugin built on vLLM 0.32" in contract.found
    assert [one.signal for one in contract.missing] == [Signal.DEVICE_FREE_BYTES]
    assert snapshot.value(Signal.GENERATION_TOKENS, "r1") == 16.0
    assert snapshot.value(Signal.FINISHED, "r1") == 1.0
