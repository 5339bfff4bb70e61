"""Records the cases: `python -m evals.real_cpu.record -c deploy/local-cpu.toml OUT [NAME...]`.

For each case its settings are written, its traffic is sent, and what is then seen is recorded. It
takes about two minutes a case.
"""

import os
import signal
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from evals.real_cpu.load import START_S, running
from evals.real_cpu.scenario import Scenario
from evals.real_cpu.scenarios import SCENARIOS
from stack.clock import WallClock
from stack.errors import InputError
from stack.local.configuration import LocalStack, read_stack
from stack.local.live import LiveStack
from stack.local.processes.supervisor import Supervisor
from stack.local.reading.recorder import check_free, incident_of, keep, live_readings, settings_in_force, stack_facts

RECORDED_S = 75.0
WARM_S = 10.0
STEP_S = 5.0


def record(
    folder: Annotated[Path, typer.Argument(metavar="OUT", help="Where the incident folders go.")],
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME]...", help="Default: all cases.")] = None,
    config: Annotated[Path, typer.Option("-c", "--config", help="File with a [stack] table.")] = Path(
        "deploy/local-cpu.toml"
    ),
) -> None:
    """Record cases of a real stack, one after the other."""
    configuration = read_stack(config)
    for arguments, scenarios in grouped(chosen(names or ())).items():
        with up(started_with(configuration, arguments)) as supervisor:
            for scenario in scenarios:
                check_free(folder / scenario.name)
                supervisor.up(_told)
                record_one(scenario, supervisor, folder / scenario.name)
                typer.echo(f"{scenario.name}: recorded")


def grouped(scenarios: Sequence[Scenario]) -> dict[tuple[str, ...], list[Scenario]]:
    """Cases by what their engines are started with."""
    groups: dict[tuple[str, ...], list[Scenario]] = {}
    for scenario in scenarios:
        groups.setdefault(scenario.engine_arguments, []).append(scenario)
    return groups


def chosen(names: Sequence[str]) -> tuple[Scenario, ...]:
    """The cases called so; all of them for none.

    Raises:
        InputError: there is no such case.
    """
    known = {scenario.name: scenario for scenario in SCENARIOS}
    unknown = sorted(set(names) - set(known))
    if unknown:
        raise InputError(f"no case {unknown[0]!r}; there are {', '.join(known)}")
    return tuple(known[name] for name in names) or SCENARIOS


def record_one(scenario: Scenario, supervisor: Supervisor, folder: Path) -> None:
    """Do what the case says, record, and put the settings back."""
    configuration, clock = supervisor.stack, WallClock()
    length_s = START_S + WARM_S + RECORDED_S
    environment = {**os.environ, **configuration.engine.environment}
    with LiveStack(configuration, writes=True) as live, tempfile.TemporaryDirectory() as place:
        former = [(setting, target, live.control.read(setting, target)) for setting, target, _ in scenario.settings]
        for setting, target, value in scenario.settings:
            live.control.write(setting, target, value)
        with running(scenario.name, scenario.loads, configuration, length_s, Path(place), environment):
            time.sleep(START_S + WARM_S)
            killer = Killer(supervisor, scenario.kills)
            readings = live_readings(configuration, clock, length_s=RECORDED_S, step_s=STEP_S, go_on=killer.tick)
            settings, facts = settings_in_force(configuration, readings), stack_facts(configuration, readings, STEP_S)
        for setting, target, value in former:
            live.control.write(setting, target, value)
    incident = incident_of(configuration, facts, clock.now_s(), scenario.title, scenario.question)
    keep(folder, incident.model_copy(update={"truth": scenario.truth}), readings, settings)


class Killer:
    """Kills a replica once, a third into the recording.

    Args:
        name: the replica; none for an empty name.
    """

    def __init__(self, supervisor: Supervisor, name: str) -> None:
        self._supervisor, self._name, self._done = supervisor, name, not name

    def tick(self, passed_s: float) -> bool:
        """Look whether it is time; recording always goes on."""
        if not self._done and passed_s >= RECORDED_S / 3:
            self._done = True
            for status in self._supervisor.status():
                if status.name == self._name and status.pid:
                    os.killpg(status.pid, signal.SIGKILL)
        return True


def started_with(configuration: LocalStack, arguments: tuple[str, ...]) -> LocalStack:
    """The stack with further arguments for its engines."""
    engine = configuration.engine
    return configuration.model_copy(
        update={"engine": engine.model_copy(update={"arguments": (*engine.arguments, *arguments)})}
    )


@contextmanager
def up(configuration: LocalStack) -> Iterator[Supervisor]:
    """The stack, without the watcher that would bring a killed replica back."""
    supervisor = Supervisor(configuration, ("true",))
    try:
        yield supervisor
    finally:
        supervisor.down(_told)


def _told(line: str) -> None:
    typer.echo(line, err=True)


if __name__ == "__main__":
    typer.run(record)
