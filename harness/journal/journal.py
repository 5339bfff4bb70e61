"""The journal: what was decided and done. It, and nothing else, is the truth about effects."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property

from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from harness.errors import ApprovalError, TransitionError
from harness.journal.decisions import Decisions
from harness.journal.envelopes import Envelopes
from harness.journal.proposals import AUTO
from harness.journal.reading import FREEZE, HALTED, UNFREEZE, Event
from harness.journal.record import Permit, Record, State
from harness.journal.row import permit_row, verification_row
from harness.outcome import Measured, Verification
from stack.outside_text import plain
from stack.setting import Value

__all__ = ["AUTO", "Journal"]


class Journal(Decisions):
    """Permits, transitions and endings, for whoever holds the lease; the freeze switch, for anybody."""

    @cached_property
    def envelopes(self) -> Envelopes:
        """The same stack's envelopes."""
        return Envelopes(self._store, self._ledger, self._role_of, self._stack or "")

    @property
    def leads(self) -> bool:
        """Whether this journal was opened with a lease, so that what has an effect can be written in it."""
        return self._ledger.lease is not None

    @property
    def epoch(self) -> int:
        """Of the lease.

        Raises:
            LeaseLostError: there is none.
        """
        return self._ledger.held_lease().epoch

    @property
    def surely_held(self) -> bool:
        """Whether our lease is good for one more call to the stack, whatever the store says or does not say."""
        return self._ledger.lease is not None and self._ledger.lease.surely_held

    def hold(self) -> str | None:
        """Renew the lease: directly before anything is written to the stack, and now and then.

        Returns:
            Why changes are halted at that moment; None when they are not.

        Raises:
            LeaseLostError: it is not ours (any more).
        """
        self._ledger.held_lease()
        with self._ledger.begin() as connection:
            return self._frozen(connection)

    def release(self) -> None:
        """Let go of the lease, so that the next holder need not wait for its end."""
        self._ledger.held_lease().release(self._store)

    def arm(self, action_id: int, permit: Permit, now_s: float) -> Record:
        """Commit the permit: from here on the undo is stored, and the writes in it may be sent.

        A person's approval is used up by this, once and for all; whether it covers the action is asked here again.

        Raises:
            ApprovalError: nobody's approval covers it any more.
            TransitionError: the action is not approved, another change is in flight, or the stack's state is not that
                of the permit any more.
            LeaseLostError: the lease is not ours.
        """
        numbers = permit_row(replace(permit, epoch=self._ledger.held_lease().epoch))
        columns: dict[str, object] = {"permit": numbers, "armed_s": now_s}
        try:
            with self._ledger.begin() as connection:
                found = self._state_version(connection)
                if found != permit.state_version:
                    changed = f"expected the stack's state {permit.state_version}, found {found}"
                    raise TransitionError(f"action {action_id}: {changed}: it was changed or frozen meanwhile")
                move, source, to = self._ledger.move, State.APPROVED, State.ARMED
                armed = move(connection, action_id, source, to, now_s, numbers, **columns)
                self._require_approval(connection, armed)
                return armed
        except IntegrityError as error:
            raise TransitionError(f"action {action_id}: another change is in flight") from error

    def _require_approval(self, connection: Connection, record: Record) -> None:
        approval = record.approval
        if approval is None and record.decided_by == AUTO:
            return
        why_not = "it is approved by nobody" if approval is None else self._objection(connection, record, approval)
        if why_not is not None:
            raise ApprovalError(f"action {record.id}: {why_not}")

    def settle(self, record: Record, now_s: float, read_back: Mapping[str, Value]) -> Record:
        """A change was read back in full: it is applied, and settles from now on.

        Raises:
            TransitionError: its row is not in the state that `record` tells any more.
        """
        times: dict[str, object] = {"applied_s": now_s, "touched_s": now_s}
        with self._ledger.begin() as connection:
            move, numbers = self._ledger.move, {"read_back": read_back}
            move(connection, record.id, record.state, State.APPLIED, now_s, numbers, **times)
            return move(connection, record.id, State.APPLIED, State.SETTLING, now_s, {})

    def end(
        self,
        record: Record,
        to: State,
        now_s: float,
        reason: str,
        *,
        holds: Value | None,
        verification: Verification | None = None,
        touched_s: float | None = None,
    ) -> Record:
        """Move an action into one of the four endings.

        Raises:
            TransitionError: not legal; keeping without a measured improvement is not either.
        """
        if to is State.KEPT and (verification is None or verification.measured is not Measured.IMPROVED):
            raise TransitionError(f"action {record.id}: kept needs a measured improvement")
        verification = verification or record.verification
        row = None if verification is None else verification_row(verification)
        return self.move(
            record.id,
            record.state,
            to,
            now_s,
            {"reason": reason, "holds": holds, "verification": row},
            ended_s=now_s,
            touched_s=record.touched_s if touched_s is None else touched_s,
            end_reason=reason,
            holds=holds,
            verification=row,
        )

    def note(self, action_id: int | None, what: str, now_s: float, numbers: Mapping[str, object]) -> int:
        """Log something that changes no state; the number of the line."""
        with self._ledger.begin() as connection:
            action = None if action_id is None else self._ledger.row(connection, action_id)
            return self._ledger.log(connection, action, what, now_s, numbers)

    def freeze(self, reason: str, *, by: str, now_s: float, halt: bool = False) -> int:
        """Halt all new changes until a person lifts it.

        Args:
            halt: ask whoever holds the lease to undo what is in flight, too.

        Returns:
            Number of the line that says so.
        """
        return self.note(None, FREEZE, now_s, {"reason": plain(reason), "by": plain(by), "halt": halt})

    def answer_halt(self, asked: Event, *, now_s: float) -> None:
        """Say that nothing is in flight any more since `asked`."""
        self.note(None, HALTED, now_s, {"answers": asked.seq})

    def unfreeze(self, reason: str, *, by: str, now_s: float) -> None:
        """Allow changes again."""
        self.note(None, UNFREEZE, now_s, {"reason": plain(reason), "by": plain(by)})
