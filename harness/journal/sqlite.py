"""The store in a SQLite file, or in memory: journal mode DELETE and full synchronisation, one writer at a time.

Connections are kept open: opening one costs more than most transactions. No lock is held between transactions.
"""

import os
import sqlite3
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError, DisconnectionError
from sqlalchemy.pool import ConnectionPoolEntry, QueuePool, StaticPool

from harness.errors import StoreError


def sqlite_engine(path: Path | None, busy_timeout_s: float, *, read_only: bool = False) -> Engine:
    """Connections to the database at `path`, or to one in memory.

    A transaction takes the write lock as it begins, unless it is for reading only.
    """
    if path is None:
        engine = create_engine("sqlite://", poolclass=StaticPool, connect_args={"check_same_thread": False})
    else:
        engine = create_engine(f"sqlite:///{path}", poolclass=QueuePool, creator=_opener(path))
        _follow(engine, path)

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
    return lambda: sqlite3.connect(uri, uri=True, check_same_thread=False)


def _follow(engine: Engine, path: Path) -> None:
    """Use a kept connection only while the file at `path` is the one that it opened, with the same rights."""

    def remember(_connection: object, record: ConnectionPoolEntry) -> None:
        record.info["file"] = _file_at(path)

    def compare(_connection: object, record: ConnectionPoolEntry, _proxy: object) -> None:
        if _file_at(path) != record.info["file"]:
            raise DisconnectionError(f"{path} is not the file that was opened")

    event.listen(engine, "connect", remember)
    event.listen(engine, "checkout", compare)


def _file_at(path: Path) -> tuple[int, ...] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_mode, found.st_uid, found.st_gid


def check_file(path: Path) -> None:
    """Look at the file before it is opened.

    Raises:
        StoreError: it must not be written, or cannot be.
    """
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


def create_file(path: Path) -> None:
    """Make an empty file that only its owner may read, where there is none.

    Raises:
        StoreError: that is not possible.
    """
    if path.exists():
        return
    try:
        path.touch(mode=0o600)
    except OSError as error:
        raise StoreError(f"{path}: cannot be created: {error.strerror}") from error


def check_pages(connection: Connection, name: str) -> None:
    """Look through the whole file.

    Raises:
        StoreError: it is corrupt.
    """
    found = connection.exec_driver_sql("PRAGMA quick_check(1)").scalar()
    if found != "ok":
        raise StoreError(f"{name}: the database is corrupt: {found}")


def sqlite_cause(error: DBAPIError) -> str:
    """What is wrong, in words."""
    text = str(error.orig).splitlines()[0]
    hints = {
        "locked": "busy: another process holds the database",
        "readonly": "read-only, the journal must be able to write",
        "not a database": "not a database",
        "malformed": "the database is corrupt",
    }
    return next((f"{hint} ({text})" for word, hint in hints.items() if word in text), text)
