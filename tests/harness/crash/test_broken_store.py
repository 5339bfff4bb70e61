"""Stores that fail for reasons of their own: full disks, locks, files that cannot be written."""

import json
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from crash_ending import heal
from crash_world import PRE, WANTED, Session, World, live, prepared

from harness.errors import StoreError
from harness.journal.record import State
from harness.journal.store import open_store
from harness.policy import Policy

NOBODY = 65534


@pytest.fixture
def world(tmp_path: Path) -> World:
    return prepared(tmp_path / "journal.db", Policy.load(), 0.7)


@pytest.fixture
def full_disk(world: World) -> Iterator[None]:
    """From the change on no file can grow, which SQLite meets as a full disk: its journal cannot be written either."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def fill(world: World, *, room_bytes: int = 0) -> None:
    size = world.path.stat().st_size if room_bytes else 0
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + room_bytes, resource.RLIM_INFINITY))


def test_on_a_full_disk_nothing_is_begun(world: World, full_disk: None):
    def change(session: Session) -> None:
        fill(world)
        with pytest.raises(StoreError, match="disk"):
            session.change()

    assert live(world, change)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert world.stack.writes == [] and heal(world) == []


def test_a_disk_that_fills_while_a_change_settles_has_it_undone_at_once(world: World, full_disk: None):
    def change(session: Session) -> None:
        session.change()
        assert world.stack.values["routing_weight", "r0"] == WANTED
        fill(world)
        world.clock.sleep(60)
        with pytest.raises(StoreError):
            session.executor.supervise(world.stack.snapshot(60))
        assert world.stack.values["routing_weight", "r0"] == PRE

    assert live(world, change)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert [record.state for record in heal(world)] == [State.ROLLED_BACK]


@pytest.mark.parametrize("when", ["before the permit", "after the write"])
def test_a_database_locked_for_longer_than_its_time_out(world: World, when: str):
    holder = sqlite3.connect(world.path, isolation_level=None)

    def lock() -> None:
        if not holder.in_transaction:
            holder.execute("BEGIN EXCLUSIVE")

    def change(session: Session) -> None:
        session.store.close()
        if when == "before the permit":
            lock()
        else:
            world.stack.after_write = lock
        with pytest.raises(StoreError, match="busy"):
            session.change()

    world.stack.on_write = lambda *_: None
    before = len(world.seen)
    assert live(world, change)
    holder.execute("ROLLBACK")
    holder.close()
    world.stack.after_write = lambda: None
    assert world.stack.values["routing_weight", "r0"] == PRE and len(world.seen) == before
    assert [value for _, _, value in world.stack.writes] == ([] if when == "before the permit" else [WANTED, PRE])
    world.stack.writes.clear()
    ends = [record.state for record in heal(world)]
    assert ends == ([] if when == "before the permit" else [State.NOTHING_DONE])


READ_ONLY = """
import json, os, sys
from pathlib import Path
from harness.errors import StoreError
from harness.journal.audit import audit
from harness.journal.store import open_store, read_store
open_store().close()  # reads what nobody may have no right to, as the program itself
os.setgid(65534); os.setuid(65534)
path = Path(sys.argv[1])
try:
    open_store(path)
except StoreError as error:
    refused = str(error)
print(json.dumps({"refused": refused, "broken": audit(read_store(path)).broken}))
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_a_user_who_may_only_read_can_audit_and_nothing_else(world: World):
    with tempfile.TemporaryDirectory() as name:
        folder, path = Path(name), Path(name) / "journal.db"
        folder.chmod(0o755)
        shutil.copy(world.path, path)
        path.chmod(0o644)
        command = [sys.executable, "-c", READ_ONLY, str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        assert found["broken"] is None and "read-only" in found["refused"]
        assert path.read_bytes() == world.path.read_bytes()


def test_a_store_that_vanished_is_an_error_that_names_it(world: World):
    def change(session: Session) -> None:
        session.change()
        world.stack.on_write = lambda *_: None
        world.path.unlink()
        with pytest.raises(StoreError, match=r"journal\.db"):
            session.executor.supervise(world.stack.snapshot(60))
        assert world.stack.values["routing_weight", "r0"] == PRE

    assert live(world, change)
    open_store(world.path).close()
    with closing(sqlite3.connect(world.path)) as empty:
        assert empty.execute("SELECT count(*) FROM action").fetchone() == (0,)
