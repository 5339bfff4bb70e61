"""A real vLLM whose engine process is killed: its API server and workers end, and the watcher brings all of it back."""

import os
import signal
import threading
from pathlib import Path

import httpx
import pytest
from small_stack import free_ports, lives, soon

from stack.local.configuration import LocalStack, read_stack
from stack.local.processes.engine_limits import EngineLimits
from stack.local.processes.events import EventLog
from stack.local.processes.held_values import HeldValues
from stack.local.processes.kernel_process import members
from stack.local.processes.readiness import completion_trouble
from stack.local.processes.services import services
from stack.local.processes.watch import watch
from stack.local.processes.watching import keepers, teller

ROOT = Path(__file__).parent.parent.parent.parent
ENGINE_TITLE = "EngineCore"
START_S = 240.0

pytestmark = pytest.mark.real_stack


@pytest.fixture
def stack(tmp_path):
    shipped = read_stack(ROOT / "deploy" / "local-cpu.toml").engine
    plugin = shipped.arguments[shipped.arguments.index("--scheduler-cls") :]
    engine, gateway, metrics = free_ports(3)
    size = ("--max-model-len", "512", "--block-size", "32", "--num-gpu-blocks-override", "64", "--max-num-seqs", "8")
    found = LocalStack.model_validate(
        {
            "run_folder": tmp_path / "run",
            "engine": {
                "command": (
                    *(str(ROOT / ".venv-vllm/bin/vllm"), "serve", str(ROOT / ".flashvector/models/tiny")),
                    *("--load-format", "dummy"),
                ),
                "arguments": ("--served-model-name", "tiny", "--dtype", "bfloat16", "--enforce-eager", *size, *plugin),
                "environment": shipped.environment,
                "model": "tiny",
                "ready_s": START_S,
            },
            "replicas": [{"name": "r1", "url": f"http://127.0.0.1:{engine}"}],
            "gateway": {
                "url": f"http://127.0.0.1:{gateway}",
                "metrics_url": f"http://127.0.0.1:{metrics}",
                "managed": False,
            },
        }
    )
    yield found
    for service in services(found):
        service.stop()


@pytest.fixture
def watched(stack):
    """A watcher in this process; the values it gives back are set through the engine's own routes."""
    stop, limits = threading.Event(), EngineLimits(stack)
    tell = teller(stack, lambda line: None)
    write = lambda setting, target, value: limits.restore(target, {setting: value})  # noqa: E731
    thread = threading.Thread(target=watch, args=(keepers(stack, write, tell), stack.run_folder, tell, stop))
    thread.start()
    yield stack
    stop.set()
    thread.join(30)


def told(stack, what):
    return [one for one in EventLog(stack.run_folder).read() if one.what == what]


def title(pid):
    return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")


def test_a_killed_engine_process_takes_the_replica_down_and_it_comes_back_with_its_limits(watched):
    (service,) = services(watched)
    url = watched.replicas[0].url
    soon(lambda: len(told(watched, "ready")) == 1, within_s=START_S)
    HeldValues(watched.run_folder).note("running_request_cap", "r1", 3)
    server = service.process.running().identity.pid
    family = [one.pid for one in members(server)]
    (engine,) = [pid for pid in family if ENGINE_TITLE in title(pid)]

    os.kill(engine, signal.SIGKILL)
    soon(lambda: told(watched, "restored"), within_s=START_S)

    assert not any(lives(pid) for pid in family)
    assert service.process.running().identity.pid != server
    assert completion_trouble(url, "tiny") is None
    assert EngineLimits(watched).read("r1") == {"running_request_cap": 3}
    assert told(watched, "lost")[0].target == "r1"
    assert [one.text for one in told(watched, "restored")] == ["running_request_cap of r1: 3"]
    assert httpx.get(f"{url}/health", trust_env=False).status_code == 200
