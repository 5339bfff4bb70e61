"""`flashvector stop` and `flashvector unfreeze`: halt all changes from another process, and allow them again."""

import getpass
import json
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from agent.account import envelope_text
from agent.settings import DEFAULT_FILE, Settings
from harness.envelope.record import ENDED, EnvelopeRecord
from harness.journal.journal import Journal
from harness.journal.lease import lease_of
from harness.journal.record import Record
from harness.journal.store import Store, open_store
from stack.catalogue import in_words
from stack.errors import InputError
from ui.envelope_view import envelope_json
from ui.store_choice import Config, StorePath, chosen_store

WAIT_S = 15.0
SILENT_S = 12.0
"""Without a sign of life for so long, a session is taken for dead: it renews its lease about every five seconds."""
POLL_S = 0.2

By = Annotated[str | None, typer.Option(help="Who says so; default: the user of this process.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]


@dataclass(frozen=True)
class Stopped:
    """What a stop has brought about.

    Attributes:
        answered: whether a session has said that nothing is in flight any more.
        session: whether one holds the lease and gives signs of life.
        seconds: from the freeze to the answer, or to giving up waiting for one.
        ended: actions that ended since.
        in_flight: actions that may still hold a changed value.
        envelope: the one that was in force at the freeze, as it stands now.
    """

    answered: bool
    session: bool
    seconds: float
    ended: tuple[Record, ...]
    in_flight: tuple[Record, ...]
    envelope: EnvelopeRecord | None = None

    @property
    def done(self) -> bool:
        """Whether nothing may hold a changed value any more."""
        return not self.in_flight and (self.envelope is None or self.envelope.state in ENDED)


def stop(
    config: Config = None,
    store: StorePath = None,
    reason: Annotated[str, typer.Option(help="Why, for the journal.")] = "",
    by: By = None,
    as_json: AsJson = False,
) -> None:
    """Halt all changes now and undo what is in flight; exit code 1 while something still is. `unfreeze` lifts it.

    The file given by -c names the stack, also where --store names another journal.
    """
    user = by or getpass.getuser()
    with _journal(config, store) as (opened, journal, name):
        envelope = journal.envelopes.in_force()
        asked = journal.freeze(_why(user, reason), by=user, now_s=time.time(), halt=True)
        found = _wait(opened, journal, name, asked)
        if envelope is not None:
            found = replace(found, envelope=journal.envelopes.envelope(envelope.id))
    _say(found, name, as_json)
    if not found.done:
        raise typer.Exit(1)


def unfreeze(
    reason: Annotated[str, typer.Option(help="Why changes may go on, for the journal.")],
    config: Config = None,
    store: StorePath = None,
    by: By = None,
    as_json: AsJson = False,
) -> None:
    """Allow changes again. The file given by -c names the stack."""
    if not reason.strip():
        raise InputError("--reason: expected why changes may go on, found nothing")
    user = by or getpass.getuser()
    with _journal(config, store) as (_, journal, name):
        before = journal.frozen()
        if before is not None:
            journal.unfreeze(reason, by=user, now_s=time.time())
    if as_json:
        typer.echo(json.dumps({"was_frozen": before, "frozen": None}, indent=2))
    elif before is None:
        typer.echo(f"{name}: changes were not frozen.")
    else:
        typer.echo(f"{name}: changes are allowed again; they were frozen because: {before}")


@contextmanager
def _journal(config: Path | None, store: str | None) -> Iterator[tuple[Store, Journal, str]]:
    settings = Settings.load(config=config)
    if settings.stack is None:
        raise InputError(
            f"{config or DEFAULT_FILE}: expected a table [stack], which names the stack whose changes are halted"
        )
    name = settings.stack.name
    place = chosen_store(config, store)
    if isinstance(place, Path) and not place.is_file():
        absent = f"{place.absolute()}: expected the journal of {name}, found no file"
        raise InputError(f"{absent}: no session has run with it, and nothing was halted or allowed")
    with closing(open_store(place)) as opened:
        yield opened, Journal(opened, stack=name), name


def _wait(store: Store, journal: Journal, name: str, asked: int) -> Stopped:
    """Until a session has answered, or none gives a sign of life."""
    begun_s = sign_s = time.monotonic()
    lease = lease_of(store, name)
    alive = lease is not None and not lease.is_free
    answered = False
    while alive and not answered and time.monotonic() < begun_s + WAIT_S:
        time.sleep(POLL_S)
        answered = journal.halt_asked() is None
        now = lease_of(store, name)
        if now != lease:
            lease, sign_s = now, time.monotonic()
        alive = lease is not None and not lease.is_free and time.monotonic() < sign_s + SILENT_S
    seconds = round(time.monotonic() - begun_s, 2)
    since = {event.action_id for event in journal.events() if event.seq > asked}
    ended = tuple(record for record in journal.ended() if record.id in since)
    return Stopped(answered, alive or answered, seconds, ended, journal.open_records())


def _say(found: Stopped, name: str, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(_json(found), indent=2))
        return
    console = Console(soft_wrap=True)
    for line in _lines(found, name):
        console.print(line, markup=False, highlight=False)


def _json(found: Stopped) -> dict[str, object]:
    return {
        "frozen": True,
        **{key: value for key, value in asdict(found).items() if key in ("answered", "session", "seconds")},
        "undone": [_brief(record) for record in found.ended],
        "in_flight": [_brief(record) for record in found.in_flight],
        "envelope": None if found.envelope is None else envelope_json(found.envelope),
    }


def _brief(record: Record) -> dict[str, object]:
    action = record.action
    return {
        "id": record.id,
        "setting": action.setting,
        "target": action.target,
        "state": str(record.state),
        "holds": record.holds,
        "reason": record.end_reason,
    }


def _lines(found: Stopped, name: str) -> Iterator[str]:
    if found.answered:
        yield f"{name}: all changes are halted; the running session answered after {found.seconds:.1f} s."
    elif found.session:
        yield f"{name}: changes are frozen; the running session has not answered within {found.seconds:.0f} s."
    else:
        yield f"{name}: no session is running. Changes are frozen, and the next session starts with that."
    for record in found.ended:
        action, holds = record.action, "unknown" if record.holds is None else in_words(record.holds)
        ending = str(record.state).replace("_", " ")
        yield f"  {ending}: action {record.id}, {action.setting} on {action.target} holds {holds} ({record.end_reason})"
    if found.envelope is not None:
        yield f"  {envelope_text(found.envelope)}" + ("" if found.envelope.state in ENDED else f": {_who(found)}")
    if found.answered and not found.ended and found.envelope is None:
        yield "  Nothing was in flight."
    for record in found.in_flight:
        action = record.action
        yield f"  still in flight: action {record.id}, {action.setting} on {action.target}: {_who(found)}"


def _who(found: Stopped) -> str:
    return "the session is undoing it" if found.session else "the next session undoes it first"


def _why(user: str, reason: str) -> str:
    return f"stopped by {user}" + (f": {reason}" if reason else "")
