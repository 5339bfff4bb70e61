"""One real stack for all tests of this folder: two engines, HAProxy, Prometheus, on ports of their own."""

import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from live import Live, Say, within

from stack.catalogue import SETTINGS
from stack.local.configuration import read_stack
from stack.local.control import LocalControl
from stack.local.engine.limits import LIMIT_OF
from stack.local.processes.supervisor import Supervisor
from stack.setting import Scope
from stack.snapshot import FLEET

PROJECT = Path(__file__).parents[2]
CONTEXT_TOKENS = 4096
PORTS = {"8111": "18111", "8112": "18112", "8200": "18200", "8404": "18404", "9390": "19390"}


def configuration_text(run_folder: Path) -> str:
    """deploy/local-cpu.toml with ports and folders of its own, and a context that holds what a planner is told."""
    text = (PROJECT / "deploy/local-cpu.toml").read_text(encoding="utf-8")
    for usual, own in PORTS.items():
        assert f":{usual}" in text
        text = text.replace(f":{usual}", f":{own}")
    text = text.replace(".flashvector/local-cpu/journal.db", str(run_folder / "journal.db"))
    text = text.replace('run_folder = ".flashvector/local-cpu"', f'run_folder = "{run_folder}"')
    text = text.replace('"--max-model-len", "2048"', f'"--max-model-len", "{CONTEXT_TOKENS}"')
    for place in (".venv-vllm", ".flashvector/models", "deploy/local-cpu-policy.toml"):
        text = text.replace(f'"{place}', f'"{PROJECT / place}')
    return text


@pytest.fixture(scope="session")
def stack_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fv")
    path = folder / "stack.toml"
    path.write_text(configuration_text(folder / "run"), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def supervisor(stack_file: Path) -> Iterator[Supervisor]:
    watch = (sys.executable, "-c", "from ui.command import main; main()", "stack", "watch", "-c", str(stack_file))
    found = Supervisor(read_stack(stack_file), watch)
    try:
        found.up(print)
        yield found
    finally:
        found.down(print)


@pytest.fixture
def live(supervisor: Supervisor, stack_file: Path) -> Iterator[Live]:
    """The stack with every restart-free setting as it started with, before and after the test."""
    configuration = supervisor.stack
    with (
        closing(LocalControl.of(configuration)) as control,
        closing(Live(configuration, control, supervisor, stack_file)) as found,
    ):
        calm(found)
        yield found
        calm(found)


def calm(live: Live) -> None:
    """Nothing running, every setting back."""
    for name in live.names:
        live.engine(name).change_limits({"reset": True})
        within(120, f"{name} is idle", lambda name=name: live.engine(name).limits()["running"] == 0)
    for setting in SETTINGS:
        if setting.layer != "routing":
            continue
        for target in (FLEET,) if setting.scope is Scope.POOL else live.names:
            live.control.write(setting.name, target, setting.default)
    for name in live.names:
        for limit in LIMIT_OF:
            live.control.write(limit, name, live.control.read(limit, name))


@pytest.fixture
def say(say, request: pytest.FixtureRequest) -> Say:
    """Figures of a test, shown at the end of the run."""
    return lambda text: say("measured on the real stack", [f"{request.node.name}: {text}"])
