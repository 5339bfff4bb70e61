"""Proposals: what the journal holds of a change before anybody has decided on it."""

from collections.abc import Mapping
from datetime import datetime

from sqlalchemy import Connection, or_, select

from harness.action import Action
from harness.journal.lease import Lease
from harness.journal.ledger import Ledger
from harness.journal.reading import JournalReader
from harness.journal.record import Record, State
from harness.journal.row import record_from, verdict_row
from harness.journal.schema import ACTION
from harness.journal.store import Store
from harness.mode import Mode
from harness.verdict import Ruling, Verdict
from stack.clock import Clock, WallClock

AUTO = "auto"
"""Who decided when nobody was asked."""
LATE = "nobody decided in time"
MOVED = "the stack was changed or frozen since it was proposed"


class Proposals(JournalReader):
    """What is proposed. Every change is a guarded update in one transaction with its line in the log.

    Args:
        lease: ours on the stack, for what has an effect; with one, nothing at all is written once it is lost.
    """

    def __init__(
        self, store: Store, *, stack: str = "stack", wall: Clock | None = None, lease: Lease | None = None
    ) -> None:
        super().__init__(store, stack=stack)
        self._ledger = Ledger(store, stack, wall or WallClock(), lease)

    def propose(
        self,
        action: Action,
        verdict: Verdict,
        *,
        mode: Mode,
        now_s: float,
        expiry_s: float = 600.0,
        key: str | None = None,
    ) -> Record:
        """Store a proposal with the gate's verdict; its state follows from verdict and mode.

        Args:
            expiry_s: wall time a person has to decide.
            key: makes the call repeatable: a second proposal with the same key is the first one.
        """
        state = _first_state(verdict, mode)
        with self._ledger.begin() as connection:
            if key is not None:
                known = connection.execute(select(ACTION).where(ACTION.c.key == key)).mappings().first()
                if known is not None:
                    return record_from(known)
            return self._put(connection, action, verdict, state, now_s, expiry_s, key=key)

    def expire(self, *, now_s: float) -> None:
        """End proposals nobody decided on in time, and those made for a state the stack is not in any more."""
        with self._ledger.begin() as connection:
            late = ACTION.c.expires_at <= self.wall_now()
            moved = ACTION.c.state_version.is_distinct_from(self._state_version(connection))
            waiting = (ACTION.c.stack == self._stack, ACTION.c.state == State.AWAITING_APPROVAL.value)
            void = select(ACTION.c.id, late.label("late")).where(*waiting, or_(late, moved))
            for action_id, is_late in connection.execute(void).all():
                columns: dict[str, object] = {"end_reason": LATE if is_late else MOVED}
                self._ledger.move(connection, action_id, State.AWAITING_APPROVAL, State.EXPIRED, now_s, {}, **columns)

    def move(
        self,
        action_id: int,
        source: State,
        to: State,
        now_s: float,
        numbers: Mapping[str, object] | None = None,
        **columns: object,
    ) -> Record:
        """Change an action's state from exactly `source`, and log it, in one transaction; its row after that.

        Raises:
            TransitionError: not legal, or the action is not in `source` any more.
        """
        with self._ledger.begin() as connection:
            return self._ledger.move(connection, action_id, source, to, now_s, numbers or {}, **columns)

    def wall_now(self) -> datetime:
        """Wall time, UTC."""
        return self._ledger.wall_now()

    def _put(
        self,
        connection: Connection,
        action: Action,
        verdict: Verdict,
        state: State,
        now_s: float,
        expiry_s: float,
        *,
        key: str | None = None,
        replaces: int | None = None,
    ) -> Record:
        """A new row, for the state that the stack has, moved to its first state."""
        version = self._state_version(connection)
        action_id = self._ledger.insert(connection, action, verdict, version, now_s, expiry_s, key)
        columns: dict[str, object] = {
            "decided_by": AUTO if state is State.APPROVED else None,
            "end_reason": "; ".join(hit.detail for hit in verdict.hits) if state is State.DENIED else None,
        }
        numbers: dict[str, object] = {"verdict": verdict_row(verdict)}
        if replaces is not None:
            numbers["replaces"] = replaces
        return self._ledger.move(connection, action_id, State.PROPOSED, state, now_s, numbers, **columns)


def _first_state(verdict: Verdict, mode: Mode) -> State:
    if verdict.ruling is Ruling.DENY:
        return State.DENIED
    if mode is Mode.SHADOW:
        return State.SHADOWED
    return State.APPROVED if verdict.ruling is Ruling.ALLOW else State.AWAITING_APPROVAL
