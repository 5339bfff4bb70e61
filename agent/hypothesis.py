"""A change that a person has named, made into an action, with the value in force read from the snapshot."""

from agent.quoting import quoted
from harness.action import Action
from stack.errors import InputError
from stack.setting import Scope, Setting, Value
from stack.snapshot import FLEET, Snapshot

REQUESTED = "requested"
"""Cause of an action that answers a person's wish instead of a finding."""


def requested(setting: Setting, target: str, value: Value, snapshot: Snapshot, by: str) -> Action:
    """The change of `setting` on `target` to `value`.

    Raises:
        InputError: the value is out of bounds, or the value in force is not known or differs between replicas.
    """
    value = _number(setting, value)
    problem = setting.problem_with(value)
    if problem:
        raise InputError(problem)
    return Action(
        setting=setting.name,
        target=target,
        before=in_force(setting, target, snapshot),
        after=value,
        cause=REQUESTED,
        layer=setting.layer,
        reason=f"asked for by {quoted(by, 60)}",
        requested_by=by,
    )


def in_force(setting: Setting, target: str, snapshot: Snapshot) -> Value:
    """The value `setting` has on `target` now.

    Raises:
        InputError: it was not read, or it differs between the replicas of the fleet.
    """
    held = snapshot.settings.get(setting.name, {})
    if target in held:
        return held[target]
    if target != FLEET or setting.scope is Scope.POOL or not held:
        raise InputError(f"the value of {setting.name} on {target} is not known from what was read")
    values = set(held.values())
    if len(values) > 1:
        each = ", ".join(f"{replica} {value}" for replica, value in sorted(held.items()))
        raise InputError(f"{setting.name} differs between replicas ({each}): name one of them")
    return values.pop()


def _number(setting: Setting, value: Value) -> Value:
    """A number written as text, as models like to, where the setting is numeric."""
    if setting.choices or not isinstance(value, str):
        return value
    try:
        return float(value)
    except ValueError:
        return value
