"""A log that was tampered with: whoever does it may drop the triggers first, and still it shows."""

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scripted_stack import cap_action

from harness.errors import StoreError
from harness.journal.audit import Audit, audit
from harness.journal.chain import GENESIS, link_hash
from harness.journal.store import open_store, read_store

DATA = Path(__file__).parents[2] / "data"
OTHER = {
    "time_s": "time_s + 0.001",
    "at": "'2020-01-01 00:00:00.000000'",
    "action_id": "ifnull(action_id, 0) + 1",
    "numbers": """'{"other": 1}'""",
}
EVENT_COLUMNS = (
    "stack",
    "action_id",
    "time_s",
    "at",
    "what",
    "numbers",
    "action_digest",
    "previous_hash",
    "hash",
)
ACTION_COLUMNS = (
    "key",
    "stack",
    "state",
    "setting",
    "target",
    "setting_class",
    "proposal",
    "verdict",
    "proposed_s",
    "expires_at",
    "state_version",
    "decided_by",
    "approval",
    "permit",
    "armed_s",
    "applied_s",
    "touched_s",
    "ended_s",
    "end_reason",
    "holds",
    "verification",
)


@pytest.fixture
def lived(bench) -> Path:
    """A journal with an action that was undone, one that was denied, and a freeze."""
    bench.watch(900)
    bench.apply()
    bench.executor.stop(by="olga")
    bench.propose(cap_action())
    bench.store.close()
    return bench.path


def tampered(path: Path, *statements: str) -> Audit:
    """What an audit finds in a copy of the journal after `statements`."""
    copy = path.with_name("tampered.db")
    shutil.copy(path, copy)
    with closing(sqlite3.connect(copy)) as database, database:
        for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            database.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            database.execute(statement)
    return audited(copy)


def audited(path: Path, **more: str) -> Audit:
    with closing(read_store(path)) as store:
        return audit(store, **more)


def numbers(path: Path, query: str) -> list[int]:
    with closing(sqlite3.connect(path)) as database:
        return [row[0] for row in database.execute(query)]


def test_an_untouched_log_is_whole_and_its_head_is_the_last_hash(lived: Path):
    found = audited(lived)
    assert found.broken is None and found.actions == 2
    seqs = numbers(lived, "SELECT seq FROM event ORDER BY seq")
    assert seqs == list(range(1, found.events + 1))
    assert [found.head] == numbers(lived, "SELECT hash FROM event ORDER BY seq DESC LIMIT 1")
    assert audited(lived, noted_head=found.head) == found


def test_an_empty_log_is_whole(tmp_path: Path):
    open_store(tmp_path / "journal.db").close()
    assert audited(tmp_path / "journal.db") == Audit(0, 0, GENESIS)


@pytest.mark.parametrize("column", EVENT_COLUMNS)
def test_a_changed_column_of_any_line_is_found_at_that_line(lived: Path, column: str):
    changed = OTHER.get(column, "'other'")
    for seq in numbers(lived, "SELECT seq FROM event")[::3]:
        found = tampered(lived, f"UPDATE event SET {column} = {changed} WHERE seq = {seq}")
        assert found.broken is not None and found.broken.startswith(f"event {seq} ("), (column, seq, found)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE event SET numbers = '{not json' WHERE seq = 3",
        "UPDATE event SET at = 'garbage' WHERE seq = 3",
        "UPDATE action SET proposal = '{not json'",
    ],
)
def test_what_cannot_even_be_read_is_broken_and_no_crash(lived: Path, change: str):
    found = tampered(lived, change)
    assert found.broken is not None and "cannot be read" in found.broken


def test_a_removed_note_of_the_last_line_is_found(lived: Path):
    assert "names the last line: it was removed" in tampered(lived, "DELETE FROM head").broken


def test_a_removed_a_replaced_and_an_inserted_line_are_found(lived: Path):
    last = max(numbers(lived, "SELECT seq FROM event"))
    for seq in range(1, last):
        assert tampered(lived, f"DELETE FROM event WHERE seq = {seq}").broken.startswith(f"event {seq}:")
    shift = (
        "UPDATE event SET seq = -seq WHERE seq >= 3",
        "INSERT INTO event SELECT 3, stack, action_id, time_s, at, what, numbers, action_digest, previous_hash, hash "
        "FROM event WHERE seq = 2",
        "UPDATE event SET seq = 1 - seq WHERE seq < 0",
    )
    assert tampered(lived, *shift).broken.startswith("event 3 (")
    swap = ("UPDATE event SET seq = -2 WHERE seq = 2", "UPDATE event SET seq = 2 WHERE seq = 3")
    assert tampered(lived, *swap, "UPDATE event SET seq = 3 WHERE seq = -2").broken.startswith("event 2 (")


def test_lines_cut_off_at_the_end_are_found(lived: Path):
    last = max(numbers(lived, "SELECT seq FROM event"))
    for kept in range(last):
        assert (
            f"event {kept + 1}: lines were cut off" in tampered(lived, f"DELETE FROM event WHERE seq > {kept}").broken
        )


@pytest.mark.parametrize("column", ACTION_COLUMNS)
def test_a_changed_column_of_an_action_is_found(lived: Path, column: str):
    times = ("proposed_s", "armed_s", "applied_s", "touched_s", "ended_s")
    value = f"ifnull({column}, 0) + 1" if column in times else "'\"other\"'"
    value = "'2020-01-01 00:00:00.000000'" if column == "expires_at" else value
    found = tampered(lived, f"UPDATE action SET {column} = {value} WHERE id = 1")
    assert found.broken is not None and found.broken.startswith("action 1 ("), found


def test_removed_and_added_actions_are_found(lived: Path):
    assert tampered(lived, "DELETE FROM action WHERE id = 2").broken.startswith("action 2: ")
    columns = ", ".join(name for name in ACTION_COLUMNS if name != "key")
    add = f"INSERT INTO action ({columns}) SELECT {columns} FROM action WHERE id = 2"
    assert "no line of the log tells of it" in tampered(lived, add).broken


def test_a_log_written_anew_is_found_by_a_head_noted_before(lived: Path):
    noted = audited(lived).head
    forged = ("DELETE FROM event", "DELETE FROM action", f"UPDATE head SET seq = 0, hash = '{GENESIS}'")
    assert tampered(lived, *forged).broken is None
    assert noted in audited(lived.with_name("tampered.db"), noted_head=noted).broken


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.dictionaries(st.text(max_size=5), st.floats(allow_nan=False) | st.text(max_size=5) | st.none(), min_size=1),
    st.data(),
)
def test_the_hash_depends_on_every_field_and_not_on_their_order(fields: dict[str, object], data):
    name = data.draw(st.sampled_from(sorted(fields)))
    if name == "hash":
        assert link_hash(fields) == link_hash({**fields, "hash": "another"})
    else:
        assert link_hash(fields) != link_hash({**fields, name: [fields[name]]})
    assert link_hash(dict(reversed(fields.items()))) == link_hash(json.loads(json.dumps(fields)))


def test_a_journal_of_the_first_release_is_chained_when_it_is_opened(tmp_path: Path):
    path = tmp_path / "journal.db"
    with closing(sqlite3.connect(path)) as old:
        old.executescript((DATA / "journal_0001.sql").read_text(encoding="utf-8"))
    before = numbers(path, "SELECT what FROM event ORDER BY seq")
    with pytest.raises(StoreError, match=r"expected a journal of this release .* found 0001"):
        read_store(path)
    open_store(path).close()
    found = audited(path)
    assert found.broken is None and found.actions == 2
    assert numbers(path, "SELECT what FROM event ORDER BY seq") == [*before, "chained", "chained"]
    assert tampered(path, "UPDATE action SET end_reason = 'fine' WHERE id = 1").broken.startswith("action 1 (")
    assert tampered(path, "UPDATE event SET numbers = '{}' WHERE seq = 2").broken.startswith("event 2 (")


def test_what_cannot_be_read_is_said_and_nothing_is_created(tmp_path: Path):
    path = tmp_path / "journal.db"
    with pytest.raises(StoreError, match="found no file"):
        read_store(path)
    path.touch()
    with pytest.raises(StoreError, match="empty database"):
        read_store(path)
    assert path.read_bytes() == b"" and list(tmp_path.iterdir()) == [path]
