"""What the gateway starts with: a value for every setting and target, and the numbers its rules compare with."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from stack.catalogue import setting_named
from stack.local.configuration import LocalStack
from stack.local.gateway import layout
from stack.setting import Scope, Value
from stack.snapshot import FLEET

Values: TypeAlias = Mapping[str, Mapping[str, Value]]
"""{setting: {target: value}}."""

DEFAULT_NUMBERS: Mapping[str, float] = {
    layout.TTFT_LIMIT_S: 1.0,
    layout.TTFT_LIMIT_S_PER_TOKEN: 1e-4,
    layout.BATCH_TTFT_LIMIT_S: 240.0,
}
"""Seconds, seconds per prompt token, seconds: those of the simulated fleet."""


@dataclass(frozen=True)
class Start:
    """What to start with, where it differs from the defaults.

    Attributes:
        values: settings in force.
        numbers: other entries of the numbers map: TTFT limits, and slots per replica.
    """

    values: Values = field(default_factory=dict)
    numbers: Mapping[str, float] = field(default_factory=dict)


def whole(start: Start, configuration: LocalStack) -> Start:
    """`start` with every gap filled by the default; targets that the stack does not have are left out."""
    values: dict[str, dict[str, Value]] = {}
    for setting in layout.GATEWAY_SETTINGS:
        targets = (FLEET,) if setting.scope is Scope.POOL else configuration.names
        given = start.values.get(setting.name, {})
        values[setting.name] = {target: given.get(target, setting.default) for target in targets}
    slots = {
        f"{layout.SLOTS}{name}": float(setting_named("running_request_cap").default) for name in configuration.names
    }
    known = {**slots, **DEFAULT_NUMBERS}
    numbers = known | {name: value for name, value in start.numbers.items() if name in known}
    return Start(values, numbers)
