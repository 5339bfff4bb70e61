"""Resolving: what an armed action did is found out by reading back, and by nothing else."""

from harness.execution.actuator import Actuator
from harness.execution.held import Held, foreign, holds_former, holds_wanted
from harness.execution.undoing import Undoing
from harness.journal.journal import Journal
from harness.journal.record import Record, State, held_value
from harness.limits import VerificationPlan
from harness.verification.block import BlockLog
from stack.clock import Clock


class Resolving:
    """Goes on from ARMED or UNKNOWN, after a write as after a crash."""

    def __init__(
        self,
        actuator: Actuator,
        journal: Journal,
        undoing: Undoing,
        clock: Clock,
        plan: VerificationPlan,
        blocks: BlockLog,
    ) -> None:
        self._actuator, self._journal, self._undoing = actuator, journal, undoing
        self._clock, self._plan, self._blocks = clock, plan, blocks

    def resolve(self, record: Record, *, resume: bool) -> Record:
        """Nothing done, applied, undone or left to a person, by what the stack holds.

        Args:
            resume: go on with a change that was made in full; otherwise, as after a restart, it is undone.
        """
        held = self._actuator.held(record)
        if held is None:
            return self._unanswered(record)
        somebody = foreign(record, held)
        if somebody is not None:
            return self._undoing.give_up(record, somebody, held)
        if holds_former(record, held):
            reason, now_s = "the stack still holds its former value", self._clock.now_s()
            return self._journal.end(record, State.NOTHING_DONE, now_s, reason, holds=held_value(held))
        if resume and holds_wanted(record, held):
            return self._applied(record, held)
        self._undoing.roll_back(
            record, "only part of the change was made" if resume else "restarted before it was judged"
        )
        return self._journal.record(record.id)

    def _unanswered(self, record: Record) -> Record:
        now_s = self._clock.now_s()
        if record.state is State.ARMED:
            return self._journal.move(record.id, State.ARMED, State.UNKNOWN, now_s)
        if now_s - (record.armed_s or now_s) > self._plan.rollback_retry_s:
            silent = "the stack does not answer, so what it holds is unknown"
            return self._undoing.give_up(record, silent, None)
        return record

    def _applied(self, record: Record, held: Held) -> Record:
        now_s = self._clock.now_s()
        settling = self._journal.settle(record, now_s, held)
        self._blocks.cut(now_s + self._plan.settle_s)
        return settling
