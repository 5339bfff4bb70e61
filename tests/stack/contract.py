"""What every stack's reader and control must do: call these from a test of each implementation."""

import dataclasses

import pytest

from stack.catalogue import SETTINGS
from stack.control import StackControl
from stack.errors import RefusedError, UnknownSettingError
from stack.reader import StackReader
from stack.setting import Scope, Setting, Value
from stack.snapshot import FLEET

RESTART_FREE = [setting for setting in SETTINGS if setting.setting_class == "A"]


def target_of(setting: Setting, replica: str) -> str:
    return FLEET if setting.scope is Scope.POOL else replica


def another_value(setting: Setting, held: Value) -> Value:
    """A valid value that differs from `held`, and not by so much that an engine cannot take it."""
    if setting.choices:
        return next(choice for choice in setting.choices if choice != held)
    half, low = float(held) / 2, setting.low if setting.low is not None else 0.0
    if half > low:
        return float(int(half)) if setting.integral else half
    return float(held) + max(setting.step_min, 1.0 if setting.integral else 0.05)


def check_a_write_is_set_to_value(control: StackControl, setting: Setting, replica: str) -> None:
    """What was written is returned, read back, and stays when written again; the former value can be put back."""
    target = target_of(setting, replica)
    former = control.read(setting.name, target)
    value = another_value(setting, former)
    for _ in range(2):
        assert control.write(setting.name, target, value) == value
        assert control.read(setting.name, target) == value
    assert control.write(setting.name, target, former) == former
    assert control.read(setting.name, target) == former


def check_unknown_names_are_refused(control: StackControl, replica: str) -> None:
    for name, target in (
        ("no_such_setting", replica),
        ("routing_weight", "no-such-replica"),
        ("routing_weight", FLEET),
    ):
        with pytest.raises(UnknownSettingError, match=name if name == "no_such_setting" else target):
            control.read(name, target)
        with pytest.raises(UnknownSettingError):
            control.write(name, target, 1.0)


def check_bad_values_are_refused_and_nothing_changes(control: StackControl, setting: Setting, replica: str) -> None:
    target = target_of(setting, replica)
    held = control.read(setting.name, target)
    bad: list[Value] = ["no such choice", float("nan"), -1e12, 1e12]
    for value in bad:
        with pytest.raises(RefusedError) as caught:
            control.write(setting.name, target, value)
        assert caught.value.holds == held
        assert repr(held) in str(caught.value)
    assert control.read(setting.name, target) == held


def check_a_snapshot_is_a_frozen_account_of_its_window(reader: StackReader, window_s: float) -> None:
    snapshot = reader.snapshot(window_s)
    assert snapshot.time_s is not None
    assert snapshot.window_s is not None
    assert 0 < snapshot.window_s <= window_s
    assert snapshot.replicas
    assert snapshot.fleet
    with pytest.raises(dataclasses.FrozenInstanceError):
        snapshot.time_s = 0.0  # type: ignore[misc]


def check_reading_gives_no_way_to_write(reader: StackReader) -> None:
    public = {name for name in dir(reader) if not name.startswith("_")}
    assert not any(word in name for name in public for word in ("write", "set_", "control", "simulation", "truth"))
