"""Changes next to the values in force: what could have been done where no trouble asked for anything."""

from collections.abc import Iterator

from harness.action import Action
from stack.catalogue import SETTINGS, UNLIMITED
from stack.setting import Setting, SettingClass, Value
from stack.snapshot import Snapshot

CAUSE = "next_value"


def neighbours(snapshot: Snapshot, enabled: frozenset[str]) -> Iterator[Action]:
    """Each enabled class A setting one longest step up and down from its value, and every other choice."""
    for setting in SETTINGS:
        if setting.name not in enabled or setting.setting_class is not SettingClass.A:
            continue
        for target, held in sorted(snapshot.settings.get(setting.name, {}).items()):
            for value in _next(setting, held, snapshot.span(setting.name, target)):
                yield Action(
                    setting=setting.name,
                    target=target,
                    before=held,
                    after=value,
                    cause=CAUSE,
                    layer=setting.layer,
                    reason="the next value",
                )


def _next(setting: Setting, held: Value, span: tuple[float | None, float | None]) -> Iterator[Value]:
    if isinstance(held, str):
        yield from (choice for choice in setting.choices if choice != held)
        return
    if setting.step_ratio is None or held >= UNLIMITED:
        return
    step = max(setting.step_ratio * abs(held), setting.step_min)
    lows = [low for low in (setting.low, span[0]) if low is not None]
    highs = [high for high in (setting.high, span[1]) if high is not None]
    for value in (min([held + step, *highs]), max([held - step, *lows])):
        if value != held:
            yield float(round(value)) if setting.integral else value
