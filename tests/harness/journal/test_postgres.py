"""What holds on PostgreSQL in particular; the tests that take a `place` hold on both databases."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from postgres_server import new_database, postgres_server
from scripted_stack import ManualClock, ScriptedStack, weight_action
from sqlalchemy import create_engine, make_url, text
from sqlalchemy.exc import IntegrityError

from harness.errors import StoreError
from harness.execution import Executor
from harness.gate.check import check
from harness.journal.audit import audit
from harness.journal.journal import Journal
from harness.journal.lease import Lease
from harness.journal.record import State
from harness.journal.schema import METADATA
from harness.journal.store import open_store, read_store
from harness.lease_keeper import LeaseKeeper
from harness.mode import Mode
from harness.policy import Policy
from stack.redaction import redacted

pytestmark = pytest.mark.postgres

HOLDER = """
import os, signal, sys
from harness.journal.store import open_store
with open_store(sys.argv[1]).begin():
    print("holds", flush=True)
    os.kill(os.getpid(), signal.SIGSTOP)
"""


class Watched:
    """A session on a scripted stack that was watched long enough for a change."""

    def __init__(self, url: str) -> None:
        self.clock = ManualClock()
        self.stack = ScriptedStack(self.clock)
        self.store = open_store(url, busy_timeout_s=1.0)
        self.journal = Journal(self.store, lease=Lease.take(self.store, "stack", clock=ManualClock()))
        self.policy = Policy.load()
        self.executor = Executor(self.stack, self.journal, self.policy, self.clock, self.stack, simulated=True)
        for _ in range(45):
            self.clock.sleep(20)
            self.executor.supervise(self.stack.snapshot(60))

    def change(self) -> State:
        snapshot, now_s = self.stack.snapshot(60), self.clock.now_s()
        action, history = weight_action(), self.executor.history()
        verdict = check(action, snapshot, history, self.policy, mode=Mode.AUTO, now_s=now_s, simulated=True)
        record = self.journal.propose(action, verdict, mode=Mode.AUTO, now_s=now_s)
        return self.executor.apply(record.id, mode=Mode.AUTO, snapshot=snapshot).state

    @property
    def holds(self) -> object:
        return self.stack.values["routing_weight", "r0"]


@pytest.fixture
def watched(database: str) -> Iterator[Watched]:
    session = Watched(database)
    yield session
    session.store.close()


def test_the_schema_is_the_one_the_tables_describe(database: str):
    open_store(database).close()
    with closing(open_store(database)) as store, store.begin() as connection:
        assert compare_metadata(MigrationContext.configure(connection), METADATA) == []


def test_a_change_is_made_stopped_from_outside_undone_and_audited(watched: Watched, database: str):
    assert watched.change() is State.SETTLING and watched.holds == 60.0
    with LeaseKeeper(watched.journal, watched.executor, watched.clock), closing(open_store(database)) as outside:
        other = Journal(outside)
        other.freeze("stopped by olga", by="olga", now_s=1.0, halt=True)
        until_s = time.monotonic() + 5
        while other.halt_asked() is not None:
            assert time.monotonic() < until_s
            time.sleep(0.05)
        assert [record.state for record in other.ended()] == [State.ROLLED_BACK] and watched.holds == 100.0
    with closing(read_store(database)) as reading:
        assert audit(reading).broken is None
        with pytest.raises(StoreError, match="read-only"), reading.begin() as connection:
            connection.execute(text("DELETE FROM lease"))


def test_a_restart_undoes_what_was_in_flight(watched: Watched, database: str):
    watched.change()
    with closing(open_store(database)) as store:
        journal = Journal(store, lease=Lease.take(store, "stack", clock=ManualClock()))
        after = Executor(watched.stack, journal, watched.policy, watched.clock, watched.stack, simulated=True)
        assert [record.state for record in after.recover()] == [State.ROLLED_BACK]
    assert watched.holds == 100.0


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE event SET what = 'kept'",
        "DELETE FROM event",
        "TRUNCATE event",
        "TRUNCATE event, action, episode, shadow_score",
        "DELETE FROM episode",
        "TRUNCATE shadow_score",
        "UPDATE action SET permit = '{}'",
        "UPDATE action SET proposal = '{}'",
        "UPDATE action SET target = 'r9'",
    ],
)
def test_log_score_permit_and_proposal_cannot_be_changed(watched: Watched, statement: str):
    watched.change()
    with watched.store.begin() as connection:
        episode = "episode (action_id, time_s, episode, environment) VALUES (1, 1.0, '{}', '{}')"
        score = "shadow_score (key, stack, planner, decided_s, score) VALUES ('k', 'stack', 'search', 1.0, '{}')"
        for row in (episode, score):
            connection.execute(text(f"INSERT INTO {row}"))
    with pytest.raises(IntegrityError, match=r"append-only|never changes"), watched.store.begin() as connection:
        connection.execute(text(statement))


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("UPDATE event SET numbers = '{}' WHERE seq = 3", "event 3 ("),
        ("UPDATE event SET time_s = time_s + 0.001 WHERE seq = 2", "event 2 ("),
        ("DELETE FROM event WHERE seq = 2", "event 2: it was removed"),
        ("DELETE FROM event WHERE seq > 4", "event 5: lines were cut off"),
        ("UPDATE action SET state = 'kept'", "action 1 (kept)"),
        ("UPDATE action SET applied_s = 1.0", "action 1 (settling)"),
    ],
)
def test_tampering_past_the_triggers_shows(watched: Watched, database: str, statement: str, found: str):
    watched.change()
    with watched.store.begin() as connection:
        for table in ("event", "action"):
            connection.execute(text(f"ALTER TABLE {table} DISABLE TRIGGER ALL"))
        connection.execute(text(statement))
    with closing(read_store(database)) as reading:
        assert audit(reading).broken.startswith(found)


def test_a_process_that_stops_within_a_transaction_blocks_others_and_only_for_a_while(database: str):
    open_store(database).close()
    command = [sys.executable, "-c", HOLDER, database]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        try:
            assert holder.stdout.readline() == "holds\n"
            with pytest.raises(StoreError, match="busy: another process holds the database"):
                open_store(database, busy_timeout_s=0.5)
            open_store(database, busy_timeout_s=30.0).close()
        finally:
            os.kill(holder.pid, signal.SIGKILL)


def test_a_server_that_dies_has_the_change_undone_and_a_restart_ends_it(tmp_path: Path):
    with postgres_server() as folder:
        session = Watched(new_database(folder, "journal"))
        assert session.change() is State.SETTLING
        pid = int((folder / "data" / "postmaster.pid").read_text().splitlines()[0])
        os.kill(pid, signal.SIGQUIT)
        time.sleep(1.0)
        session.clock.sleep(20)
        with pytest.raises(StoreError, match=r"postgresql\+psycopg:///journal"):
            session.executor.supervise(session.stack.snapshot(60))
        assert session.holds == 100.0


def test_an_address_that_is_none_is_named_without_its_password(database: str):
    for address in ("mysql://olga:secret@host/db", "://", "postgresql://olga:secret@host/db"):
        with pytest.raises(StoreError, match=r"expected postgresql\+psycopg://") as raised:
            open_store(address)
        assert "secret" not in str(raised.value)
    away = "postgresql+psycopg://olga:secret@127.0.0.1:9/journal"
    with pytest.raises(StoreError, match=r"127\.0\.0\.1:9") as raised:
        open_store(away)
    assert "secret" not in str(raised.value)
    for away in ("u:p/w-of-olga@127.0.0.1:9/journal", "127.0.0.1:9/journal?user=u&password=p/w-of-olga"):
        with pytest.raises(StoreError) as raised:
            open_store(f"postgresql+psycopg://{away}")
        assert "w-of-olga" not in f"{raised.value} {redacted('no password p/w-of-olga, p%2Fw-of-olga')}"


def test_another_programs_database_is_refused(database: str):
    engine = create_engine(make_url(database))
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE customers (name TEXT)"))
    engine.dispose()
    with pytest.raises(StoreError, match="found tables customers"):
        open_store(database)
