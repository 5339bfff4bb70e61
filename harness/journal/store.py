"""The store: one database, opened, checked and brought to the present schema before anything is done."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TypeAlias

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Connection, Engine, inspect
from sqlalchemy.exc import DBAPIError, IntegrityError

from harness.errors import StoreError
from harness.journal.postgres import postgres_cause, postgres_engine, postgres_name, postgres_url
from harness.journal.sqlite import check_file, check_pages, create_file, sqlite_cause, sqlite_engine

BUSY_TIMEOUT_S = 5.0
MIGRATIONS = "harness.journal:migrations"
Place: TypeAlias = Path | str | None
"""Where a store is: a SQLite file, the URL of a PostgreSQL database, or nowhere but in memory."""


class Store:
    """An open database. Every transaction takes the write lock at once, so a read in it cannot be overtaken."""

    def __init__(self, engine: Engine, name: str, cause: Callable[[DBAPIError], str]) -> None:
        self._engine, self.name, self._cause = engine, name, cause

    @contextmanager
    def begin(self) -> Iterator[Connection]:
        """One transaction: committed at the end of the block, rolled back on any exception.

        Raises:
            StoreError: the database cannot be used; one line naming it.
            IntegrityError: a constraint refused the change.
        """
        try:
            with self._engine.begin() as connection:
                yield connection
        except IntegrityError:
            raise
        except DBAPIError as error:
            raise StoreError(f"{self.name}: {self._cause(error)}") from error

    def close(self) -> None:
        """Give it back."""
        self._engine.dispose()


def open_store(place: Place = None, *, busy_timeout_s: float = BUSY_TIMEOUT_S) -> Store:
    """Open the database at `place`, creating a file if absent; None keeps everything in memory.

    Raises:
        StoreError: it is read-only, busy, corrupt, not a database, not there, or not ours; it is left as it was.
    """
    if isinstance(place, Path):
        check_file(place)
        create_file(place)
    return _checked(_store(place, busy_timeout_s), _migrate)


def read_store(place: Path | str, *, busy_timeout_s: float = BUSY_TIMEOUT_S) -> Store:
    """Open the database at `place` for reading only; nothing is created or brought to the present schema.

    Raises:
        StoreError: it is absent, busy, corrupt, not a database, not ours, or has another release's schema.
    """
    if isinstance(place, Path) and not place.is_file():
        raise StoreError(f"{place}: expected a journal, found no file")
    return _checked(_store(place, busy_timeout_s, read_only=True), _check_version)


def _store(place: Place, busy_timeout_s: float, *, read_only: bool = False) -> Store:
    if isinstance(place, str):
        url = postgres_url(place)
        engine = postgres_engine(url, busy_timeout_s, read_only=read_only)
        return Store(engine, postgres_name(url), postgres_cause)
    engine = sqlite_engine(place, busy_timeout_s, read_only=read_only)
    return Store(engine, "store in memory" if place is None else str(place), sqlite_cause)


def _checked(store: Store, prepare: Callable[[Connection, str], None]) -> Store:
    try:
        with store.begin() as connection:
            _check_content(connection, store.name)
            prepare(connection, store.name)
    except StoreError:
        store.close()
        raise
    return store


def _check_content(connection: Connection, name: str) -> None:
    if connection.dialect.name == "sqlite":
        check_pages(connection, name)
    tables = set(inspect(connection).get_table_names())
    if tables and "alembic_version" not in tables:
        raise StoreError(f"{name}: expected a FlashVector journal, found tables {', '.join(sorted(tables)[:5])}")


def _migrate(connection: Connection, name: str) -> None:
    if _version(connection) == _head():
        return
    config = _migrations()
    config.attributes["connection"] = connection
    try:
        command.upgrade(config, "head")
    except CommandError as error:
        raise StoreError(f"{name}: written by another release of FlashVector: {error}") from error


def _check_version(connection: Connection, name: str) -> None:
    wanted, held = _head(), _version(connection)
    if held is None:
        raise StoreError(f"{name}: expected a FlashVector journal, found an empty database")
    if held != wanted:
        found = f"expected a journal of this release ({wanted}), found {held}"
        raise StoreError(f"{name}: {found}; a session or `flashvector doctor` brings an older one up to date")


@cache
def _head() -> str | None:
    """Revision of this release's schema."""
    return ScriptDirectory.from_config(_migrations()).get_current_head()


def _version(connection: Connection) -> str | None:
    if "alembic_version" not in inspect(connection).get_table_names():
        return None
    return connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()


def _migrations() -> Config:
    config = Config()
    config.set_main_option("script_location", MIGRATIONS)
    return config
