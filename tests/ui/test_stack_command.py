"""`flashvector stack` as a person and as a program see it, on small engines."""

import functools
import json
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ui.command import application

ENGINE = Path(__file__).parent.parent / "stack" / "local" / "small_engine.py"
FLASHVECTOR = "from ui.command import main; main()"


@pytest.fixture
def config(tmp_path, free_ports):
    one, two, three = free_ports
    path = tmp_path / "stack.toml"
    path.write_text(
        f"""
        [stack]
        run_folder = "{tmp_path / "run"}"
        [stack.engine]
        command = ["{sys.executable}", "{ENGINE}"]
        model = "small"
        [[stack.replicas]]
        name = "r1"
        url = "http://127.0.0.1:{one}"
        [stack.gateway]
        url = "http://127.0.0.1:{two}"
        metrics_url = "http://127.0.0.1:{three}"
        managed = false
        """
    )
    yield path
    said("down", path)


@pytest.fixture
def free_ports():
    probes = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
    ports = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return ports


def said(command, config, *options):
    return CliRunner().invoke(application(["stack"]), ["stack", command, "-c", str(config), *options])


def services(answer):
    return {one["name"]: one for one in json.loads(answer.stdout)["services"]}


def test_up_status_and_down(config):
    up = said("up", config)
    assert up.exit_code == 0, up.output
    assert "r1: http://127.0.0.1:" in up.output and "ready after" in up.output
    found = services(said("status", config, "--json"))
    assert set(found) == {"r1", "watch"}
    assert found["r1"]["trouble"] is None and found["r1"]["profile"] == "default"
    assert found["watch"]["pid"] > 0
    assert said("down", config).exit_code == 0
    after = said("status", config, "--json")
    assert after.exit_code == 1
    assert [one["pid"] for one in services(after).values()] == [None, None]


def test_a_watcher_in_the_foreground_is_known_and_ended_by_down(config):
    command = (sys.executable, "-c", FLASHVECTOR, "stack", "watch", "-c", str(config))
    watcher = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        lines = [watcher.stdout.readline() for _ in range(2)]
        assert lines[0].startswith("started r1: r1 started as pid ")
        assert lines[1].startswith("ready r1: r1 serves at http://127.0.0.1:")
        assert services(said("status", config, "--json"))["watch"]["pid"] == watcher.pid
        assert said("down", config).exit_code == 0
        assert watcher.wait(10) == 0
    finally:
        watcher.kill()
        watcher.wait()
        watcher.stdout.close()
    assert services(said("status", config, "--json"))["r1"]["pid"] is None


def test_ctrl_c_ends_the_waiting_and_says_what_runs_on(config):
    text = config.read_text().replace(f'"{ENGINE}"', '"-c", "import time; time.sleep(600)"')
    config.write_text(text)
    command = (sys.executable, "-c", FLASHVECTOR, "stack", "up", "-c", str(config))
    # where the tests run in the background Ctrl-C is ignored, and so it would be by what they start
    heeding = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    starting = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, preexec_fn=heeding)
    log = config.parent / "run" / "r1.log"
    deadline_s = time.monotonic() + 60
    while not log.exists():
        assert time.monotonic() < deadline_s
        time.sleep(0.1)
    time.sleep(1.0)
    starting.send_signal(signal.SIGINT)
    told = starting.communicate(timeout=30)[1]
    assert starting.returncode == 1
    assert "what was started runs on" in told and "Traceback" not in told
    assert services(said("status", config, "--json"))["r1"]["pid"] > 0


@pytest.mark.parametrize(
    "command", [("chat", "-c", "FILE", "--ask", "why is P99 high?"), ("run", "--stack", "FILE", "--minutes", "1")]
)
def test_a_stack_that_is_down_is_no_healthy_one(config, command):
    given = [str(config) if part == "FILE" else part for part in command]
    process = subprocess.run((sys.executable, "-c", FLASHVECTOR, *given), capture_output=True, text=True, check=False)
    assert process.returncode == 1, process.stdout
    assert "Traceback" not in process.stderr
    assert "nothing" in process.stderr.lower(), process.stderr
    assert "Nothing needs attention" not in process.stdout
