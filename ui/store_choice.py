"""Which journal a command reads: the file that was named, or that of a configuration."""

from pathlib import Path
from typing import Annotated

import typer

from agent.settings import Settings
from stack.errors import InputError

Config = Annotated[Path | None, typer.Option("-c", "--config", help="File whose store_path is meant.")]
StorePath = Annotated[Path | None, typer.Option("--store", metavar="PATH", help="Or: the journal's database.")]


def chosen_store(config: Path | None, store: Path | None) -> Path:
    """The journal that was named.

    Raises:
        InputError: none was, or the configuration keeps none.
    """
    path = store or Settings.load(config=config).store_path
    if path is None:
        where = f"{config}: " if config else ""
        raise InputError(f"{where}expected store_path, or --store PATH: without one the journal is kept in memory only")
    return path
