"""`flashvector serve`: the loop on a live stack and a conversation about it, in the terminal, until it is stopped."""

import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer
from rich.console import Console

from agent.account import envelope_text
from agent.session import CycleReport, Session
from agent.settings import Settings
from agent.wiring import live_session
from harness.journal.record import Record
from harness.mode import Mode
from ui.allowance import ask_for
from ui.answer import print_answer
from ui.decision import decided
from ui.episode import episode_text
from ui.interruption import Interruption, interruption
from ui.shown import Shown
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
        shown = Shown(console)
        teller = _Teller(console, shown)
        while not stop.asked:
            teller.tell(session, session.cycle())
            _listen(session, console, stop, shown)
        leave(session, console)


def leave(session: Session, console: Console) -> None:
    """End the session, and say what became of all that was not proved yet."""
    some = _undone(session, console, lambda: session.leave(LEFT))
    console.print("Ended." if some else "Ended; no change was open.", style="dim")


def halt(session: Session, console: Console) -> None:
    """Halt all changes, and say what became of all that was not proved yet."""
    some = _undone(session, console, session.stop)
    console.print("All changes are halted." if some else "All changes are halted; none was open.")


def _undone(session: Session, console: Console, undo: Callable[[], tuple[Record, ...]]) -> bool:
    """Whether `undo` had anything to undo, the envelope in force included; each with what it came to."""
    envelope = session.envelope_in_force
    ended = undo()
    for record in ended:
        console.print(episode_text(record, session.started_s))
    if envelope is not None:
        console.print(envelope_text(session.envelope(envelope.id)), markup=False)
    return bool(ended) or envelope is not None


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

    def __init__(self, console: Console, shown: Shown) -> None:
        self._console, self._shown = console, shown
        self._last, self._warned = "", ""

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
        self._shown.whatever_is_new(session)

    def _say(self, session: Session, line: str) -> None:
        self._console.print(f"{session.elapsed_s:7.0f} s  {line}", markup=False, highlight=False)


def _listen(session: Session, console: Console, stop: Interruption, shown: Shown) -> None:
    """Do what was typed meanwhile."""
    while (line := typed_line()) is not None:
        words, file = line.lower(), _ENVELOPE.fullmatch(line)
        if words in {"quit", "exit"}:
            stop.asked = True
        elif words == "stop":
            halt(session, console)
        elif file is not None:
            ask_for(session, console, Path(file[1]), shown)
        elif line and not decided(session, console, words, shown):
            print_answer(console, session.ask(line))
