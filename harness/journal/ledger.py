"""Writing to the journal: rows of actions and lines of the log, always both in one transaction."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from sqlalchemy import Connection, RowMapping, bindparam, insert, select, update

from harness.action import Action
from harness.errors import LeaseLostError, TransitionError
from harness.journal.lease import Lease
from harness.journal.log import append
from harness.journal.record import LEGAL, OPEN, Record, State
from harness.journal.row import action_row, record_from, verdict_row
from harness.journal.schema import ACTION
from harness.journal.store import Store
from harness.verdict import Verdict
from stack.clock import Clock
from stack.redaction import redacted_tree

INSERT = insert(ACTION)
FIND = select(ACTION).where(ACTION.c.id == bindparam("action_id"))
MOVE = update(ACTION).where(ACTION.c.id == bindparam("action_id"), ACTION.c.state == bindparam("source"))
"""Made once: making a statement takes as long as carrying it out."""


class Ledger:
    """One stack's pages of a store.

    Args:
        wall: clock of the log and of approvals.
        lease: ours on the stack; without one, proposals and decisions can be written and nothing that has an effect.
    """

    def __init__(self, store: Store, stack: str, wall: Clock, lease: Lease | None) -> None:
        self._store, self._stack, self._wall, self.lease = store, stack, wall, lease

    @contextmanager
    def begin(self) -> Iterator[Connection]:
        """A transaction that writes, and renews the lease, see Store.begin.

        Raises:
            LeaseLostError: the lease was taken over; nothing is written.
        """
        renewed_s = None
        with self._store.begin() as connection:
            if self.lease is not None:
                renewed_s = self.lease.renew(connection)
            yield connection
        if self.lease is not None and renewed_s is not None:
            self.lease.renewed(renewed_s)

    def held_lease(self) -> Lease:
        """Ours.

        Raises:
            LeaseLostError: we hold none.
        """
        if self.lease is None:
            raise LeaseLostError(f"this process does not hold the lease on {self._stack}, so it must not change it")
        return self.lease

    def insert(
        self,
        connection: Connection,
        action: Action,
        verdict: Verdict,
        state_version: int,
        now_s: float,
        expiry_s: float,
        key: str | None,
    ) -> int:
        """A new row in state PROPOSED; its id."""
        proposal = action_row(action)
        values: dict[str, object] = {
            "key": key,
            "stack": self._stack,
            "state": State.PROPOSED.value,
            "setting": action.setting,
            "target": action.target,
            "setting_class": action.setting_class.value,
            "proposal": proposal,
            "verdict": verdict_row(verdict),
            "proposed_s": now_s,
            "expires_at": self.wall_now() + timedelta(seconds=expiry_s),
            "state_version": state_version,
        }
        result = connection.execute(INSERT, values)
        action_id = int(result.inserted_primary_key[0])  # type: ignore[index]
        self.log(connection, self.row(connection, action_id), State.PROPOSED.value, now_s, proposal)
        return action_id

    def move(
        self,
        connection: Connection,
        action_id: int,
        source: State,
        to: State,
        now_s: float,
        numbers: Mapping[str, object],
        **columns: object,
    ) -> Record:
        """Change a row's state from exactly `source`, log it, and return the row as it is stored now.

        Raises:
            TransitionError: not legal, or the action is not in `source` any more.
            LeaseLostError: it has an effect, or may have had one, and we hold no lease.
        """
        if to not in LEGAL.get(source, frozenset()):
            raise TransitionError(f"action {action_id}: there is no way from {source} to {to}")
        if to is State.ARMED or source in OPEN:
            self.held_lease()
        # A permit holds the undo, which is stored as it is; the words in it are the verdict's, and those are redacted.
        columns = {name: value if name == "permit" else redacted_tree(value) for name, value in columns.items()}
        guard = {"action_id": action_id, "source": source.value}
        if connection.execute(MOVE, {**guard, "state": to.value, **columns}).rowcount != 1:
            raise TransitionError(f"action {action_id}: expected it to be {source}, somebody else moved it")
        row = self.row(connection, action_id)
        self.log(connection, row, to.value, now_s, numbers)
        return record_from(row)

    def log(
        self,
        connection: Connection,
        action: RowMapping | None,
        what: str,
        now_s: float,
        numbers: Mapping[str, object],
    ) -> int:
        """A line of the log about this stack, or about one of its actions; its number."""
        at = self.wall_now()
        return append(connection, what, numbers, stack=self._stack, time_s=now_s, at=at, action=action)

    def row(self, connection: Connection, action_id: int) -> RowMapping:
        """The row of an action as it is stored now, which may be in another form than what was written."""
        return connection.execute(FIND, {"action_id": action_id}).mappings().one()

    def wall_now(self) -> datetime:
        """Wall time, UTC."""
        return datetime.fromtimestamp(self._wall.now_s(), UTC)
