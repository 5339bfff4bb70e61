"""What becomes of the open changes: they are judged together, as one stacked set."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from harness.journal.record import Record, State
from harness.outcome import HARD_STOP, Measured, Verification
from harness.policy import Policy
from harness.verification.backlog import judgeable
from harness.verification.block import BlockLog
from harness.verification.goal import Goal, goal_of
from harness.verification.hard_stop import hard_stop
from harness.verification.verify import verify
from stack.setting import SettingClass
from stack.snapshot import Snapshot


class Fate(StrEnum):
    """What is done with the set."""

    WAIT = "wait"
    KEEP = "keep"
    ROLL_BACK = "roll_back"
    HOLD = "hold"
    """A restart that nobody could judge is left for a person: restarting again costs more."""


@dataclass(frozen=True)
class Decision:
    """A fate with its reason, and what was measured."""

    fate: Fate
    reason: str = ""
    verification: Verification | None = None


WAIT = Decision(Fate.WAIT)


@dataclass
class Supervision:
    """Judges the open set cycle by cycle; what it remembers may be lost, since a restart rolls the set back.

    Attributes:
        policy: windows, margins and limits.
        blocks: everything measured so far.
    """

    policy: Policy
    blocks: BlockLog
    _looks: dict[int, int] = field(default_factory=dict)
    _measured: dict[int, int] = field(default_factory=dict)
    _strikes: dict[int, int] = field(default_factory=dict)

    def decide(
        self,
        stack: Sequence[Record],
        snapshot: Snapshot | None,
        now_s: float,
        breaks_s: Sequence[float],
        *,
        final: bool = False,
    ) -> Decision:
        """What to do with the set now.

        Args:
            stack: applied and unjudged changes, oldest first; not empty.
            snapshot: the newest facts, None when blind.
            now_s: stack time.
            breaks_s: times of writes before this set.
            final: there is no later look, so it cannot wait.
        """
        stop = self._hard_stop(stack, snapshot)
        if stop:
            return Decision(Fate.ROLL_BACK, stop, Verification(Measured.WORSE, stop, method=HARD_STOP))
        plan, youngest = self.policy.verification, stack[-1]
        applied_s = _applied_s(youngest)
        if youngest.state is State.SETTLING:
            if now_s <= applied_s + plan.first_look_s + plan.blind_grace_s:
                return WAIT
            reason = "blind since the change, so its first look could not be taken"
            return Decision(Fate.ROLL_BACK, reason, Verification(Measured.UNMEASURED, reason))
        return self._look(stack, now_s, breaks_s, final=final)

    def first_look_due(self, record: Record, now_s: float) -> bool:
        """Whether a settling change may go into probation, given that something can be seen."""
        return now_s >= _applied_s(record) + self.policy.verification.first_look_s

    def _look(self, stack: Sequence[Record], now_s: float, breaks_s: Sequence[float], *, final: bool) -> Decision:
        plan, youngest = self.policy.verification, stack[-1]
        begun_s, settled_s = _applied_s(stack[0]), _applied_s(youngest) + plan.settle_s
        before = self.blocks.between(begun_s - plan.before_s, begun_s)
        goal = stacked_goal(stack)
        seen = judgeable(before, self.blocks.between(settled_s, now_s), _applied_s(youngest), goal.target)
        measured_s = sum(block.length_s for block in seen.blocks)
        due = sum(look_s <= measured_s * 1.001 for look_s in plan.looks_s)
        last = final or now_s > settled_s + plan.longest_s + plan.blind_grace_s or due == len(plan.looks_s)
        spent = self._looks.get(youngest.id, 0)
        news = len(seen.blocks) != self._measured.get(youngest.id, 0)
        if not last and (seen.draining or (due <= spent and not news)):
            return WAIT
        self._looks[youngest.id], self._measured[youngest.id] = max(due, spent), len(seen.blocks)
        early = due <= spent and not last
        found = verify(before, seen.blocks, goal, self.policy, breaks_s=breaks_s, early=early, steady=seen.steady)
        return _decision(found, last, stack)

    def _hard_stop(self, stack: Sequence[Record], snapshot: Snapshot | None) -> str | None:
        if snapshot is None:
            return None
        youngest, begun_s = stack[-1], _applied_s(stack[0])
        before = self.blocks.between(begun_s - self.policy.verification.before_s, begun_s)
        targets = [step.target for record in stack if record.permit for step in record.permit.steps]
        stop = hard_stop(snapshot, before, targets, self.policy)
        self._strikes[youngest.id] = self._strikes.get(youngest.id, 0) + 1 if stop else 0
        return stop if self._strikes[youngest.id] >= self.policy.verification.hard_stop_strikes else None


def on_trial(stack: Sequence[Record]) -> list[Record]:
    """The youngest change and those before it that answer trouble on the same layer; they are judged together.

    Older changes for another layer's trouble wait in place: figures since the new trouble say nothing about them, and
    undoing them now would leave the younger ones nothing to be compared with.
    """
    youngest = stack[-1]
    chosen: list[Record] = []
    for record in reversed(stack):
        if record.action.layer is not youngest.action.layer:
            break
        chosen.insert(0, record)
    return chosen


def stacked_goal(stack: Sequence[Record]) -> Goal:
    """The goal of one change, or of several together: then any of their goals, seen from the fleet."""
    goals = [goal_of(record.action) for record in stack]
    if len(goals) == 1:
        return goals[0]
    metrics = tuple(dict.fromkeys(name for goal in goals for name in goal.metrics))
    shifted = tuple(dict.fromkeys(name for goal in goals for name in goal.shifted))
    only_shifts = all(goal.shifted for goal in goals)
    return Goal(metrics, shifted=shifted if only_shifts else (), sheds=any(goal.sheds for goal in goals))


def _decision(found: Verification, last: bool, stack: Sequence[Record]) -> Decision:
    if found.measured is Measured.IMPROVED:
        return Decision(Fate.KEEP, found.reason, found)
    if found.measured is Measured.WORSE:
        return Decision(Fate.ROLL_BACK, found.reason, found)
    if not last:
        return WAIT
    restart = any(record.action.declaration.setting_class is SettingClass.C for record in stack)
    return Decision(Fate.HOLD if restart else Fate.ROLL_BACK, found.reason, found)


def _applied_s(record: Record) -> float:
    if record.applied_s is None:
        raise ValueError(f"action {record.id} is {record.state} but was never applied")
    return record.applied_s
