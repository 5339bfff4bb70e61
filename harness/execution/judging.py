"""Judging: changes in flight are looked at, and kept, left to a person, or undone."""

from collections.abc import Sequence

from harness.execution.actuator import Actuator
from harness.execution.held import same, steps_of
from harness.execution.undoing import Undoing
from harness.journal.journal import Journal
from harness.journal.record import Record, State, held_value
from harness.outcome import Verification
from harness.policy import Policy
from harness.verification.block import BlockLog
from harness.verification.supervision import Fate, Supervision, on_trial
from stack.clock import Clock
from stack.snapshot import Snapshot


class Judging:
    """Judges the youngest changes as one set.

    Attributes:
        condemned: actions that must be undone as soon as those on top of them are, with the reason.
    """

    def __init__(
        self, actuator: Actuator, journal: Journal, undoing: Undoing, clock: Clock, policy: Policy, blocks: BlockLog
    ) -> None:
        self._actuator, self._journal, self._undoing, self._clock = actuator, journal, undoing, clock
        self._policy, self._supervision = policy, Supervision(policy, blocks)
        self.condemned: dict[int, tuple[str, Verification | None]] = {}

    def judge(self, stack: list[Record], snapshot: Snapshot | None) -> None:
        """Move the settled and settling actions `stack`, oldest first, on by what is seen now; None when blind."""
        now_s = self._clock.now_s()
        if snapshot is not None and stack[-1].state is State.SETTLING:
            stack[-1] = self._first_look(stack[-1], now_s)
        trial = on_trial(stack)
        decision = self._supervision.decide(trial, snapshot, now_s, self._breaks_s(trial, now_s))
        if decision.fate is Fate.KEEP and decision.verification is not None:
            self._keep(trial, decision.reason, decision.verification)
        elif decision.fate is Fate.HOLD:
            for record in reversed(trial):
                held = self._actuator.held(record)
                self._undoing.give_up(record, decision.reason, held, decision.verification)
        elif decision.fate is Fate.ROLL_BACK:
            self.roll_back(trial, decision.reason, decision.verification)

    def roll_back(self, stack: Sequence[Record], reason: str, verification: Verification | None = None) -> None:
        """Undo youngest first; what lies below one that cannot be undone yet is condemned."""
        for place in reversed(range(len(stack))):
            if not self._undoing.roll_back(stack[place], reason, verification):
                self.condemned |= {older.id: (reason, verification) for older in stack[:place]}
                return

    def _first_look(self, record: Record, now_s: float) -> Record:
        if not self._supervision.first_look_due(record, now_s):
            return record
        return self._journal.move(record.id, State.SETTLING, State.PROBATION, now_s)

    def _keep(self, stack: list[Record], reason: str, verification: Verification) -> None:
        """Keep changes that the stack, read once more, still holds; a younger one may have replaced an older value."""
        now_s = self._clock.now_s()
        last = {(r.action.setting, step.target): step.wanted for r in stack for step in steps_of(r)}
        for record in reversed(stack):
            held = self._actuator.held(record)
            wanted = {step.target: last[record.action.setting, step.target] for step in steps_of(record)}
            if held is None or not all(same(held[target], value) for target, value in wanted.items()):
                lost = "the stack does not hold the change any more, or does not answer"
                self._undoing.roll_back(record, lost, verification)
                return
            holds = held_value(held)
            self._undoing.leave(record)
            self._journal.end(record, State.KEPT, now_s, reason, holds=holds, verification=verification)

    def _breaks_s(self, stack: list[Record], now_s: float) -> tuple[float, ...]:
        """When others than this set wrote to the stack, undos included, as far back as figures are compared."""
        ids, plan = {record.id for record in stack}, self._policy.verification
        since_s = min(record.applied_s or now_s for record in stack) - plan.before_s - plan.longest_s
        times = [
            time_s
            for record in self._journal.wrote(since_s)
            if record.id not in ids and record.applied_s is not None
            for time_s in (record.applied_s, record.touched_s)
            if time_s is not None
        ]
        return tuple(sorted(set(times)))
