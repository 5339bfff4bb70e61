"""`flashvector journal`: what was decided and done, and whether the log still says so."""

import json
import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from harness.errors import TransitionError
from harness.journal.audit import Audit, audit
from harness.journal.envelope_reading import EnvelopeReader
from harness.journal.reading import JournalReader
from harness.journal.record import State
from harness.journal.store import Store, read_store
from stack.errors import InputError
from ui.envelope_view import envelope_json, envelope_line, envelope_report
from ui.incident_report import action_report, span_report
from ui.journal_view import Told, event_json, told, told_json, told_text, whole_json
from ui.store_choice import Config, StorePath, chosen_store

journal = typer.Typer(help="What was decided and done, as the journal has it.", no_args_is_help=True)

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
ID_MAX = 2**31 - 1
"""Largest number of a row, in SQLite and PostgreSQL alike."""
HASH = re.compile("[0-9a-f]{64}")
ActionId = Annotated[int, typer.Argument(metavar="ID", min=1, max=ID_MAX, help="Number of the action.")]


@journal.command("list")
def list_actions(
    config: Config = None,
    store: StorePath = None,
    state: Annotated[list[State] | None, typer.Option(help="Only these; may be given several times.")] = None,
    last: Annotated[int, typer.Option(min=1, help="How many, the newest.")] = 50,
    as_json: AsJson = False,
) -> None:
    """List what was proposed and how it stands or ended, oldest first."""
    with _opened(config, store) as opened:
        reader = JournalReader(opened)
        found = [one for one in told(reader) if not state or one.record.state in state][-last:]
        halted = {name: JournalReader(opened, stack=name).frozen() for name in reader.stacks()}
        frozen = {name: why for name, why in halted.items() if why is not None}
        envelopes = () if state else EnvelopeReader(opened).envelopes()[-last:]
    if as_json:
        rows = {"actions": [told_json(one) for one in found], "envelopes": [envelope_json(one) for one in envelopes]}
        typer.echo(json.dumps({**rows, "frozen": frozen}, indent=2))
        return
    console = Console(soft_wrap=True)
    lines = [*(told_text(one) for one in found), *(envelope_line(one) for one in envelopes)]
    for line in lines or ["Nothing was proposed."]:
        console.print(line, markup=False, highlight=False)
    for name, why in frozen.items():
        console.print(f"Changes of {name} are frozen: {why}", style="yellow", markup=False, highlight=False)


@journal.command("show")
def show(action: ActionId, config: Config = None, store: StorePath = None, as_json: AsJson = False) -> None:
    """Show one action with every rule, write, figure and line of the log."""
    with _opened(config, store) as opened:
        found = _one(opened, action)
    typer.echo(json.dumps(whole_json(found), indent=2) if as_json else action_report(found))


@journal.command("envelope")
def show_envelope(
    envelope: Annotated[int, typer.Argument(metavar="ID", min=1, max=ID_MAX, help="Number of the envelope.")],
    config: Config = None,
    store: StorePath = None,
    as_json: AsJson = False,
) -> None:
    """Show one envelope: what it allows, every move with when and from what to what, and how it ended."""
    with _opened(config, store) as opened:
        reader = EnvelopeReader(opened)
        try:
            record, moves = reader.envelope(envelope), reader.moves(envelope)
        except TransitionError as error:
            raise InputError(f"{opened.name}: {error}") from error
    if as_json:
        typer.echo(json.dumps({**envelope_json(record), "log": [event_json(one) for one in moves]}, indent=2))
        return
    typer.echo(envelope_report(record, moves))


@journal.command("export")
def export(
    action: Annotated[
        int | None, typer.Argument(metavar="[ID]", min=1, max=ID_MAX, help="Of one action; else of a span.")
    ] = None,
    config: Config = None,
    store: StorePath = None,
    since: Annotated[datetime | None, typer.Option(help="Begin of the span, UTC; default: of the journal.")] = None,
    until: Annotated[datetime | None, typer.Option(help="End of the span, UTC; default: now.")] = None,
    out: Annotated[Path | None, typer.Option("-o", "--out", help="Write to this file instead of the screen.")] = None,
) -> None:
    """Write an incident report in Markdown: what was seen, proposed, ruled, decided, written, measured, and the end."""
    if action is not None and (since or until):
        raise InputError("expected one action, or a span by --since and --until, found both")
    with _opened(config, store) as opened:
        text = action_report(_one(opened, action)) if action is not None else _span(opened, since, until)
    if out is None:
        typer.echo(text)
        return
    try:
        out.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise InputError(f"--out {out}: cannot be written: {error.strerror}") from error


@journal.command("verify")
def verify(
    config: Config = None,
    store: StorePath = None,
    head: Annotated[str | None, typer.Option(help="A head hash noted earlier, which must still be there.")] = None,
    as_json: AsJson = False,
) -> None:
    """Walk the chain of hashes and hold every action against it; exit code 1 with the first broken row."""
    if head is not None and not HASH.fullmatch(head):
        raise InputError(f"--head: expected 64 digits 0 to f, found {head!r}")
    with _opened(config, store) as opened:
        found = audit(opened, noted_head=head)
    if as_json:
        typer.echo(json.dumps({"ok": found.broken is None, **asdict(found)}, indent=2))
    else:
        Console(soft_wrap=True).print(_words(found, opened.name), markup=False, highlight=False)
    if found.broken is not None:
        raise typer.Exit(1)


@contextmanager
def _opened(config: Path | None, store: str | None) -> Iterator[Store]:
    with closing(read_store(chosen_store(config, store))) as opened:
        try:
            yield opened
        except ValueError as error:
            raise InputError(f"{opened.name}: a row cannot be read, see journal verify: {error}") from error


def _one(store: Store, action: int) -> Told:
    reader = JournalReader(store)
    try:
        record = reader.record(action)
    except TransitionError as error:
        raise InputError(f"{store.name}: {error}") from error
    return Told(record, reader.events(action))


def _span(store: Store, since: datetime | None, until: datetime | None) -> str:
    reader = JournalReader(store)
    events = reader.events()
    begin = since.replace(tzinfo=UTC) if since else min((event.at for event in events), default=datetime.now(UTC))
    end = until.replace(tzinfo=UTC) if until else datetime.now(UTC)
    if since and until and end < begin:
        raise InputError(f"--until: expected a time after {begin:%F %T}, found {end:%F %T}")
    if since and end < begin:
        raise InputError(f"--since: expected a time before now, {end:%F %T}, found {begin:%F %T}")
    within = [event for event in events if begin <= event.at <= end]
    touched = {event.action_id for event in within}
    actions = [one for one in told(reader) if one.record.id in touched]
    return span_report(actions, [event for event in within if event.action_id is None], begin, end)


def _words(found: Audit, name: str) -> str:
    if found.broken is not None:
        return f"{name}: broken at {found.broken}"
    return f"{name}: OK, {found.events} events and {found.actions} actions, head {found.head}"
