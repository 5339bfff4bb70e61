"""Undoing: the stored values are written back and read back; where that is not possible, a person is needed."""

import logging

from harness.execution.actuator import Actuator
from harness.execution.held import Held, foreign, holds_former
from harness.journal.journal import Journal
from harness.journal.record import Record, State, held_value
from harness.journal.row import verification_row
from harness.limits import VerificationPlan
from harness.outcome import Verification
from harness.verification.block import BlockLog
from stack.clock import Clock

LOG = logging.getLogger(__name__)


class Undoing:
    """Takes actions back; needs the permit alone.

    Attributes:
        in_flight: actions to undo when the store fails, oldest first.
    """

    def __init__(
        self, actuator: Actuator, journal: Journal, clock: Clock, plan: VerificationPlan, blocks: BlockLog
    ) -> None:
        self._actuator, self._journal, self._clock = actuator, journal, clock
        self._plan, self._blocks = plan, blocks
        self.in_flight: tuple[Record, ...] = ()

    def roll_back(self, record: Record, reason: str, verification: Verification | None = None) -> bool:
        """Write the stored undo and read it back. False when it has to be tried again, for a while."""
        now_s = self._clock.now_s()
        record = self._rolling_back(record, reason, verification)
        held = self._actuator.held(record)
        if held is not None:
            somebody = foreign(record, held)
            if somebody is not None:
                self.give_up(record, somebody, held)
                return True
            held = self._actuator.undo(record)
        self._blocks.cut(now_s + self._plan.settle_s)
        if held is not None and holds_former(record, held):
            holds = held_value(held)
            self._journal.end(record, State.ROLLED_BACK, now_s, record.end_reason, holds=holds, touched_s=now_s)
            return True
        if now_s - (record.touched_s or now_s) <= self._plan.rollback_retry_s:
            return False
        self.give_up(record, f"the undo could not be verified ({record.end_reason})", held)
        return True

    def give_up(
        self, record: Record, reason: str, held: Held | None, verification: Verification | None = None
    ) -> Record:
        """End an action that only a person can resolve, and halt all changes."""
        now_s = self._clock.now_s()
        self.leave(record)
        self._journal.freeze(f"action {record.id}: {reason}", by="harness", now_s=now_s)
        holds = None if held is None else held_value(held)
        return self._journal.end(record, State.NEEDS_PERSON, now_s, reason, holds=holds, verification=verification)

    def leave(self, record: Record) -> None:
        """Whatever the store does from here on, this action is not undone without it."""
        self.in_flight = tuple(one for one in self.in_flight if one.id != record.id)

    def without_journal(self) -> None:
        """Write the undo of what is in flight although the store fails; the rows are ended at the next start.

        The permits that allow it are committed. What somebody else wrote is left alone.
        """
        in_flight, self.in_flight = self.in_flight, ()
        for record in reversed(in_flight):
            held = self._actuator.held(record)
            if held is None or foreign(record, held) is not None:
                LOG.error("action %s: not undone, the stack holds %s", record.id, held)
                continue
            if holds_former(record, held):
                continue
            left = self._actuator.undo(record)
            LOG.error("action %s: undone because the store failed; the stack holds %s", record.id, left)

    def _rolling_back(self, record: Record, reason: str, verification: Verification | None) -> Record:
        if record.state is State.ROLLING_BACK:
            return record
        row = None if verification is None else verification_row(verification)
        now_s = self._clock.now_s()
        columns: dict[str, object] = {"end_reason": reason, "verification": row, "touched_s": now_s}
        return self._journal.move(record.id, record.state, State.ROLLING_BACK, now_s, {"reason": reason}, **columns)
