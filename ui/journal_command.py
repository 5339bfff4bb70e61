"""`flashvector journal`: what was decided and done, and whether the log still says so."""

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from harness.journal.audit import Audit, audit
from harness.journal.store import Store, read_store
from ui.store_choice import Config, StorePath, chosen_store

journal = typer.Typer(help="What was decided and done, as the journal has it.", no_args_is_help=True)

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]


@journal.command("verify")
def verify(
    config: Config = None,
    store: StorePath = None,
    head: Annotated[str | None, typer.Option(help="A head hash noted earlier, which must still be there.")] = None,
    as_json: AsJson = False,
) -> None:
    """Walk the chain of hashes and hold every action against it; exit code 1 with the first broken row."""
    with _opened(config, store) as (opened, path):
        found = audit(opened, noted_head=head)
    if as_json:
        typer.echo(json.dumps({"ok": found.broken is None, **asdict(found)}, indent=2))
    else:
        Console(soft_wrap=True).print(_words(found, path), markup=False, highlight=False)
    if found.broken is not None:
        raise typer.Exit(1)


@contextmanager
def _opened(config: Path | None, store: Path | None) -> Iterator[tuple[Store, Path]]:
    path = chosen_store(config, store)
    with closing(read_store(path)) as opened:
        yield opened, path


def _words(found: Audit, path: Path) -> str:
    if found.broken is not None:
        return f"{path}: broken at {found.broken}"
    return f"{path}: OK, {found.events} events and {found.actions} actions, head {found.head}"
