"""Candidates inside an envelope: the same remedies in the small steps that it allows."""

import math
from collections.abc import Iterable
from dataclasses import replace

from harness.action import Action
from harness.envelope.envelope import Leave, Range
from harness.policy import Pace
from stack.snapshot import FLEET

GAIN_RATIO = 0.1
"""Of the gain a change must promise: one step of an envelope is a small part of a change, and taken back as easily."""


def inside(leave: Leave | None, actions: Iterable[Action]) -> tuple[Action, ...]:
    """`actions` with the values that the envelope in force allows; those it does not cover stay as they are."""
    if leave is None:
        return tuple(actions)
    fitted = (_fitted(leave, action) for action in actions)
    return tuple(dict.fromkeys(action for action in fitted if action.after != action.before))


def worth_a_move(leave: Leave | None, pace: Pace) -> Pace:
    """The gains that a change must promise now."""
    if leave is None:
        return pace
    share, latency = pace.slo_share_gain_min_ratio, pace.latency_gain_min_ratio
    return pace.model_copy(
        update={"slo_share_gain_min_ratio": GAIN_RATIO * share, "latency_gain_min_ratio": GAIN_RATIO * latency}
    )


def _fitted(leave: Leave, action: Action) -> Action:
    limits = _range(leave, action)
    if limits is None or isinstance(action.before, str) or isinstance(action.after, str):
        return action
    low, high = max(limits.low, action.before - limits.step), min(limits.high, action.before + limits.step)
    after = min(max(action.after, low), high)
    if action.declaration.integral:
        after = float(math.floor(after) if after > action.before else math.ceil(after))
    return action if after == action.after else replace(action, after=after)


def _range(leave: Leave, action: Action) -> Range | None:
    """The range of a place, or of the first place of a move of all replicas."""
    if action.target != FLEET:
        return leave.envelope.range_of((action.setting, action.target))
    return next((one for one in leave.envelope.ranges if one.setting == action.setting and one.target == FLEET), None)
