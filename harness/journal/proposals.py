"""Proposals and what was decided on them: the part of the journal that has no effect on a stack."""

from collections.abc import Mapping
from datetime import datetime

from sqlalchemy import select

from harness.action import Action
from harness.approval import Approve, Edit, Reject
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


class Proposals(JournalReader):
    """What is proposed and decided. Every change is a guarded update in one transaction with its line in the log.

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
            action_id = self._ledger.insert(connection, action, verdict, now_s, expiry_s, key)
            columns: dict[str, object] = {
                "decided_by": AUTO if state is State.APPROVED else None,
                "end_reason": "; ".join(hit.detail for hit in verdict.hits) if state is State.DENIED else None,
            }
            self._ledger.move(connection, action_id, State.PROPOSED, state, now_s, _why(verdict), **columns)
        return self.record(action_id)

    def decide(self, action_id: int, decision: Approve | Reject, *, now_s: float) -> Record:
        """A person's answer, valid once and until the proposal expires.

        Raises:
            TransitionError: it was decided already, has expired, or does not wait for a decision.
        """
        self.expire(now_s=now_s)
        approved = isinstance(decision, Approve)
        reason = decision.reason if isinstance(decision, Reject) else ""
        self.move(
            action_id,
            State.AWAITING_APPROVAL,
            State.APPROVED if approved else State.REJECTED,
            now_s,
            {"by": decision.by, "reason": reason},
            decided_by=decision.by,
            end_reason=None if approved else f"rejected by {decision.by}{': ' if reason else ''}{reason}",
        )
        return self.record(action_id)

    def edit(
        self, action_id: int, decision: Edit, verdict: Verdict, *, now_s: float, expiry_s: float = 600.0
    ) -> Record:
        """Replace a waiting proposal by one with another value, which the gate has judged anew.

        The new one is approved by the person who edited it unless the gate denies it.

        Raises:
            TransitionError: the proposal does not wait for a decision any more.
        """
        self.expire(now_s=now_s)
        action = decision.of(self.record(action_id).action)
        state = State.DENIED if verdict.ruling is Ruling.DENY else State.APPROVED
        with self._ledger.begin() as connection:
            edited = self._ledger.insert(connection, action, verdict, now_s, expiry_s, None)
            numbers = {"by": decision.by, "replaced_by": edited}
            reason = f"edited by {decision.by}, replaced by {edited}"
            columns: dict[str, object] = {"decided_by": decision.by, "end_reason": reason}
            waiting, why = State.AWAITING_APPROVAL, _why(verdict) | {"replaces": action_id}
            self._ledger.move(connection, action_id, waiting, State.REJECTED, now_s, numbers, **columns)
            self._ledger.move(connection, edited, State.PROPOSED, state, now_s, why, decided_by=decision.by)
        return self.record(edited)

    def expire(self, *, now_s: float) -> None:
        """End proposals nobody decided on in time."""
        late = select(ACTION.c.id).where(
            ACTION.c.stack == self._stack,
            ACTION.c.state == State.AWAITING_APPROVAL.value,
            ACTION.c.expires_at <= self.wall_now(),
        )
        columns: dict[str, object] = {"end_reason": "nobody decided in time"}
        with self._ledger.begin() as connection:
            for action_id in connection.execute(late).scalars().all():
                waiting = State.AWAITING_APPROVAL
                self._ledger.move(connection, action_id, waiting, State.EXPIRED, now_s, {}, **columns)

    def move(
        self,
        action_id: int,
        source: State,
        to: State,
        now_s: float,
        numbers: Mapping[str, object] | None = None,
        **columns: object,
    ) -> None:
        """Change an action's state from exactly `source`, and log it, in one transaction.

        Raises:
            TransitionError: not legal, or the action is not in `source` any more.
        """
        with self._ledger.begin() as connection:
            self._ledger.move(connection, action_id, source, to, now_s, numbers or {}, **columns)

    def wall_now(self) -> datetime:
        """Wall time, UTC."""
        return self._ledger.wall_now()


def _first_state(verdict: Verdict, mode: Mode) -> State:
    if verdict.ruling is Ruling.DENY:
        return State.DENIED
    if mode is Mode.SHADOW:
        return State.SHADOWED
    return State.APPROVED if verdict.ruling is Ruling.ALLOW else State.AWAITING_APPROVAL


def _why(verdict: Verdict) -> dict[str, object]:
    return {"verdict": verdict_row(verdict)}
