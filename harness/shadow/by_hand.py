"""What somebody else changed in a window, as the values in force tell it."""

from collections.abc import Sequence

from harness.action import Action
from harness.forecast.rehearsal import Change
from harness.gate.history import direction
from stack.catalogue import setting_named
from stack.setting import Scope, Value
from stack.snapshot import FLEET, Snapshot


def changes_by_hand(then: Snapshot, after: Sequence[Snapshot]) -> tuple[Change, ...]:
    """Values that are not what they were, as last seen; one change where all replicas got the same."""
    if not after:
        return ()
    found: list[Change] = []
    for setting, now in sorted(after[-1].settings.items()):
        before = then.settings.get(setting, {})
        moved = {target: value for target, value in now.items() if target in before and before[target] != value}
        found += _joined(setting, moved, then)
    return tuple(found)


def agrees(action: Action, change: Change, then: Snapshot) -> bool:
    """Whether a change by hand goes where the proposal wanted to go."""
    elsewhere = action.target != change.target and FLEET not in (action.target, change.target)
    if action.setting != change.setting or elsewhere:
        return False
    if isinstance(action.after, str) or isinstance(change.value, str):
        return action.after == change.value
    held = then.settings.get(change.setting, {})
    before = held.get(change.target, action.before)
    return direction(before, change.value) == direction(action.before, action.after)


def _joined(setting: str, moved: dict[str, Value], then: Snapshot) -> list[Change]:
    values = set(moved.values())
    whole = setting_named(setting).scope is Scope.REPLICA and moved.keys() == then.replicas.keys()
    if whole and len(values) == 1:
        return [Change(setting, FLEET, values.pop())]
    return [Change(setting, target, value) for target, value in sorted(moved.items())]
