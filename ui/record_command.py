"""`flashvector record`: a window of the live stack, kept as an incident folder."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress

from stack.clock import WallClock
from stack.local.configuration import LocalStack, read_stack
from stack.local.reading.recorder import (
    QUESTION,
    TITLE,
    check_free,
    incident_of,
    keep,
    live_readings,
    past_readings,
    settings_in_force,
    stack_facts,
    usual_step_s,
)
from stack.reading import Reading
from stack.recording import SAMPLE_FILES
from ui.interruption import Interruption, interruption

MOST_MINUTES = 1440.0


def record(
    folder: Annotated[Path, typer.Argument(metavar="OUT", help="Folder of the incident; must not hold one yet.")],
    config: Annotated[Path, typer.Option("-c", "--config", help="File that describes a stack.")],
    minutes: Annotated[float, typer.Option(min=0.05, max=MOST_MINUTES, help="How long to record from now on.")] = 5.0,
    last: Annotated[
        float | None,
        typer.Option(min=0.05, max=MOST_MINUTES, help="Or: the last minutes, from Prometheus, at once."),
    ] = None,
    step: Annotated[
        float | None, typer.Option(min=0.5, max=300, help="Seconds between two scrapes; default: 5 to 15, by length.")
    ] = None,
    title: Annotated[str, typer.Option(help="Title of the case.")] = TITLE,
    question: Annotated[str, typer.Option(help="What the operator asks.")] = QUESTION,
) -> None:
    """Record the metrics of the live stack as an incident folder. Ctrl-C ends it and keeps what was recorded."""
    configuration, clock = read_stack(config).for_reading(), WallClock()
    console = Console(stderr=True, soft_wrap=True)
    check_free(folder)
    length_s = (minutes if last is None else last) * 60
    step_s = step or usual_step_s(length_s, len(configuration.replicas))
    if last is not None:
        readings = past_readings(configuration, clock.now_s(), length_s=length_s, step_s=step_s)
    else:
        with interruption() as interrupted:
            readings = _live(configuration, clock, length_s, step_s, interrupted)
    settings = settings_in_force(configuration, readings)
    facts = stack_facts(configuration, readings, step_s)
    keep(folder, incident_of(configuration, facts, clock.now_s(), title, question), readings, settings)
    _say(console, folder, readings, configuration)


def _live(
    configuration: LocalStack, clock: WallClock, length_s: float, step_s: float, interrupted: Interruption
) -> list[Reading]:
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("recording", total=length_s)

        def go_on(passed_s: float) -> bool:
            progress.update(task, completed=passed_s)
            return not interrupted.asked

        return live_readings(configuration, clock, length_s=length_s, step_s=step_s, go_on=go_on)


def _say(console: Console, folder: Path, readings: list[Reading], configuration: LocalStack) -> None:
    times = [reading.time_s for reading in readings if reading.time_s is not None]
    size_kb = (folder / SAMPLE_FILES[1]).stat().st_size / 1000
    console.print(f"{folder}: {max(times) - min(times):.0f} s, {size_kb:.0f} kB", markup=False, highlight=False)
    absent = sorted(set(configuration.names) - {reading.replica.partition("/")[0] for reading in readings})
    if absent:
        console.print(f"Never answered: {', '.join(absent)}", style="yellow", markup=False)
