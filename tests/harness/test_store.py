import hashlib
import sqlite3
from contextlib import closing
from datetime import datetime
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import insert
from sqlalchemy.exc import StatementError

from harness.errors import StoreError
from harness.journal.lease import Lease
from harness.journal.schema import EVENT, METADATA
from harness.journal.store import Store, open_store


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_opening_creates_the_schema_the_tables_describe(tmp_path: Path):
    path = tmp_path / "journal.db"
    open_store(path).close()
    store = open_store(path)
    with store.begin() as connection:
        assert compare_metadata(MigrationContext.configure(connection), METADATA) == []
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "delete"
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2
        assert connection.exec_driver_sql("PRAGMA foreign_keys").scalar() == 1
    store.close()


@pytest.mark.parametrize("content", [b"hello " * 500, bytes(range(256)) * 32])
def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path, content: bytes):
    path = tmp_path / "journal.db"
    path.write_bytes(content)
    with pytest.raises(StoreError, match=r"journal\.db: not a database"):
        open_store(path)
    assert path.read_bytes() == content


def test_a_corrupt_database_is_refused_and_left_alone(tmp_path: Path):
    path = tmp_path / "journal.db"
    open_store(path).close()
    content = bytearray(path.read_bytes())
    content[4096:8192] = b"\x5a" * 4096
    path.write_bytes(content)
    before = digest(path)
    with pytest.raises(StoreError, match="corrupt"):
        open_store(path)
    assert digest(path) == before


def test_another_programs_database_is_refused(tmp_path: Path):
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE customers (name TEXT)")
    other.close()
    with pytest.raises(StoreError, match="customers"):
        open_store(path)


def test_a_newer_schema_is_refused(tmp_path: Path):
    path = tmp_path / "journal.db"
    open_store(path).close()
    with sqlite3.connect(path) as newer:
        newer.execute("UPDATE alembic_version SET version_num = '9999'")
    newer.close()
    with pytest.raises(StoreError, match="another release"):
        open_store(path)


@pytest.mark.parametrize("fresh", [True, False])
def test_a_busy_database_is_refused_after_the_time_out(tmp_path: Path, fresh: bool):
    path = tmp_path / "journal.db"
    if not fresh:
        open_store(path).close()
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    with pytest.raises(StoreError, match="busy"):
        open_store(path, busy_timeout_s=0.1)
    holder.close()


def test_a_read_only_file_or_folder_is_refused(tmp_path: Path):
    path = tmp_path / "journal.db"
    open_store(path).close()
    path.chmod(0o444)
    before = digest(path)
    with pytest.raises(StoreError, match="read-only"):
        open_store(path)
    assert digest(path) == before
    folder = tmp_path / "folder"
    folder.mkdir(mode=0o555)
    with pytest.raises(StoreError, match="read-only"):
        open_store(folder / "journal.db")


def count(store: Store) -> int:
    with store.begin() as connection:
        return connection.exec_driver_sql("SELECT count(*) FROM lease").scalar()


def test_a_file_that_was_put_in_place_of_another_is_the_one_that_is_used(tmp_path: Path):
    path, other = tmp_path / "journal.db", tmp_path / "other.db"
    with closing(open_store(path)) as store, closing(open_store(other)) as elsewhere:
        Lease.take(elsewhere, "stack")
        assert (count(store), count(elsewhere)) == (0, 1)
        other.replace(path)
        assert count(store) == 1
        with pytest.raises(StoreError, match=r"other\.db"):
            count(elsewhere)


def test_folders_are_named(tmp_path: Path):
    with pytest.raises(StoreError, match="found a folder"):
        open_store(tmp_path)
    with pytest.raises(StoreError, match="does not exist"):
        open_store(tmp_path / "none" / "journal.db")


def test_a_time_without_a_zone_is_refused():
    store = open_store()
    row = {"seq": 1, "time_s": 1.0, "what": "", "numbers": {}, "at": datetime(2026, 1, 1)}  # noqa: DTZ001
    with pytest.raises(StatementError, match="without a zone"), store.begin() as connection:
        connection.execute(insert(EVENT).values(**row))
    store.close()
