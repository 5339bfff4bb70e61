"""Which journal a command reads: the database that was named, or that of a configuration."""

from pathlib import Path
from typing import Annotated

import typer

from agent.settings import Settings
from stack.errors import InputError

Config = Annotated[Path | None, typer.Option("-c", "--config", help="File whose store_path or store_url is meant.")]
StorePath = Annotated[
    str | None, typer.Option("--store", metavar="PATH", help="Or: the journal, a SQLite file or a PostgreSQL URL.")
]


def chosen_store(config: Path | None, store: str | None) -> Path | str:
    """The journal that was named.

    Raises:
        InputError: none was, or the configuration keeps none.
    """
    if store is not None:
        return store if "://" in store else Path(store)
    place = Settings.load(config=config).store
    if place is None:
        where = f"{config}: " if config else ""
        raise InputError(f"{where}expected store_path, or --store PATH: without one the journal is kept in memory only")
    return place
