"""The store: one SQLite database, opened, checked and brought to the present schema before anything is done."""

import os
import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Connection, Engine, create_engine, event, inspect
from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.pool import NullPool, StaticPool

from harness.errors import StoreError

BUSY_TIMEOUT_S = 5.0
MIGRATIONS = "harness.journal:migrations"


class Store:
    """An open database. Every transaction takes the write lock at once, so a read in it cannot be overtaken."""

    def __init__(self, engine: Engine, name: str) -> None:
        self._engine = engine
        self.name = name

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
            raise StoreError(f"{self.name}: {_cause(error)}") from error

    def close(self) -> None:
        """Give the file back."""
        self._engine.dispose()


def open_store(path: Path | None = None, *, busy_timeout_s: float = BUSY_TIMEOUT_S) -> Store:
    """Open the database at `path`, creating it if absent; None keeps everything in memory.

    Raises:
        StoreError: it is read-only, busy, corrupt, not a database, or not ours; the file is left as it was.
    """
    if path is not None:
        _check_file(path)
        _create(path)
    return _checked(
        Store(_engine(path, busy_timeout_s), str(path) if path is not None else "store in memory"), _migrate
    )


def read_store(path: Path, *, busy_timeout_s: float = BUSY_TIMEOUT_S) -> Store:
    """Open the database at `path` for reading only; nothing is created or brought to the present schema.

    Raises:
        StoreError: it is absent, busy, corrupt, not a database, not ours, or has another release's schema.
    """
    if not path.is_file():
        raise StoreError(f"{path}: expected a journal, found no file")
    return _checked(Store(_engine(path, busy_timeout_s, read_only=True), str(path)), _check_version)


def _checked(store: Store, prepare: Callable[[Connection, str], None]) -> Store:
    try:
        with store.begin() as connection:
            _check_content(connection, store.name)
            prepare(connection, store.name)
    except StoreError:
        store.close()
        raise
    return store


def _engine(path: Path | None, busy_timeout_s: float, *, read_only: bool = False) -> Engine:
    if path is None:
        engine = create_engine("sqlite://", poolclass=StaticPool, connect_args={"check_same_thread": False})
    else:
        engine = create_engine(f"sqlite:///{path}", poolclass=NullPool, creator=_opener(path))

    def prepare(connection: Any, _record: object) -> None:  # noqa: ANN401 - the driver's own connection
        connection.isolation_level = None
        connection.execute(f"PRAGMA busy_timeout = {int(busy_timeout_s * 1000)}")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA synchronous = FULL")
        if read_only:
            connection.execute("PRAGMA query_only = ON")
        elif path is not None:
            connection.execute("PRAGMA journal_mode = DELETE")

    def immediately(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN" if read_only else "BEGIN IMMEDIATE")

    event.listen(engine, "connect", prepare)
    event.listen(engine, "begin", immediately)
    return engine


def _opener(path: Path) -> Callable[[], sqlite3.Connection]:
    """Connects to the file that is there: one that vanished must not come back empty."""
    uri = f"file:{quote(str(path.absolute()))}?mode=rw"
    return lambda: sqlite3.connect(uri, uri=True)


def _check_file(path: Path) -> None:
    folder = path.resolve().parent
    if not folder.is_dir():
        raise StoreError(f"{path}: the folder {folder} does not exist")
    if path.is_dir():
        raise StoreError(f"{path}: expected a database file, found a folder")
    for place in (path, folder):
        if place.exists() and not _writable(place):
            raise StoreError(f"{path}: {place} is read-only, the journal must be able to write")


def _writable(place: Path) -> bool:
    # The mode's bits count even for root, who could write anyway: somebody meant the file to stay as it is.
    return os.access(place, os.W_OK) and bool(place.stat().st_mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH))


def _create(path: Path) -> None:
    if path.exists():
        return
    try:
        path.touch(mode=0o600)
    except OSError as error:
        raise StoreError(f"{path}: cannot be created: {error.strerror}") from error


def _check_content(connection: Connection, name: str) -> None:
    found = connection.exec_driver_sql("PRAGMA quick_check(1)").scalar()
    if found != "ok":
        raise StoreError(f"{name}: the database is corrupt: {found}")
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


def _cause(error: DBAPIError) -> str:
    text = str(error.orig).splitlines()[0]
    hints = {
        "locked": "busy: another process holds the database",
        "readonly": "read-only, the journal must be able to write",
        "not a database": "not a database",
        "malformed": "the database is corrupt",
    }
    return next((f"{hint} ({text})" for word, hint in hints.items() if word in text), text)
