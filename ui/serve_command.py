"""`flashvector serve`: the loop on a live stack and a conversation about it, in the terminal, until it is stopped."""

import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer
from rich.console import Console

from agent.session import CycleReport, Session
from agent.settings import Settings
from agent.wiring import live_session
from harness.mode import Mode
from ui.allowance import ask_for
from ui.answer import print_answer
from ui.decision import decided
from ui.episode import episode_text
from ui.interruption import Interruption, interruption
from ui.question import show
from ui.sightings import tell_frozen
from ui.typed_line import typed_line

WELCOME = (
    "Type a question, approve NUMBER, reject NUMBER, envelope FILE (ask for leave to move settings within bounds), "
    "stop (halt all changes) or quit; it is read between two cycles."
)
_ENVELOPE = re.compile(r"(?i)envelope\s+(\S.*)")
LEFT = "FlashVector was ended before there was a verdict"


def serve(
    config: Annotated[Path, typer.Option("-c", "--config", help="File that describes a stack.")],
    mode: Annotated[
        Mode | None, typer.Option(help="shadow, approve or auto; default: the file's, else shadow.")
    ] = None,
) -> None:
    """Watch a live stack, propose changes, make those that are approved, prove or undo them. Ctrl-C ends it.

    What has no verdict yet is undone on the way out. A cycle that says something new is one line.
    """
    look_after(Settings.load(config=config, mode=mode), Console(soft_wrap=True))


def look_after(settings: Settings, console: Console) -> None:
    """The loop until somebody ends it.

    Raises:
        InputError: the settings describe no stack, or another session looks after it.
    """
    with live_session(settings) as session, _until_asked() as stop:
        console.print(f"{settings.mode} mode. {WELCOME}", style="dim")
        tell_frozen(session, console)
        teller = _Teller(console)
        while not stop.asked:
            teller.tell(session, session.cycle())
            _listen(session, console, stop)
        undone = session.leave(LEFT)
        for record in undone:
            console.print(episode_text(record, session.started_s))
        console.print("Ended." if undone else "Ended; no change was open.", style="dim")


@contextmanager
def _until_asked() -> Iterator[Interruption]:
    """Ctrl-C or SIGTERM, noted between two cycles."""
    with interruption() as stop:

        def note(_signal: int, _frame: FrameType | None) -> None:
            stop.asked = True

        before = signal.signal(signal.SIGTERM, note)
        try:
            yield stop
        finally:
            signal.signal(signal.SIGTERM, before)


class _Teller:
    """Says what is new, once."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._last, self._warned, self._shown = "", "", 0

    def tell(self, session: Session, report: CycleReport) -> None:
        """One cycle."""
        problems = "; ".join(f"{f.layer} {f.cause} on {f.target}" for f in report.diagnosis.problems[:2])
        line = f"{report.stage}: {report.summary}" + (f" ({problems})" if problems else "")
        warned = "; ".join(report.snapshot.warnings)
        if line != self._last:
            self._say(session, line)
        if warned != self._warned:
            self._say(session, f"warning: {warned}" if warned else "all sources answer again")
        self._last, self._warned = line, warned
        for pending in session.pending():
            if pending.id > self._shown:
                show(self._console, pending)
                self._shown = pending.id

    def _say(self, session: Session, line: str) -> None:
        self._console.print(f"{session.elapsed_s:7.0f} s  {line}", markup=False, highlight=False)


def _listen(session: Session, console: Console, stop: Interruption) -> None:
    """Do what was typed meanwhile."""
    while (line := typed_line()) is not None:
        words, file = line.lower(), _ENVELOPE.fullmatch(line)
        if words in {"quit", "exit"}:
            stop.asked = True
        elif words == "stop":
            session.stop()
            console.print("All changes are halted; what was not proved is undone.")
        elif file is not None:
            ask_for(session, console, Path(file[1]))
        elif line and not decided(session, console, words):
            print_answer(console, session.ask(line))
