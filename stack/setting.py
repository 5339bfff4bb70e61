"""What a setting is: one declaration says everything the gate, the planner and the stack need to know."""

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from stack.layer import Layer

Value: TypeAlias = float | str
"""A setting's value: a number, or the name of one of its choices."""


class Scope(StrEnum):
    """What one value applies to."""

    REPLICA = "replica"
    POOL = "pool"


class SettingClass(StrEnum):
    """How reversible a change is.

    A: at once, restart-free. B: within a minute, with warm-up. C: by a restart. D: never by the agent.
    """

    A = "A"
    B = "B"
    C = "C"
    D = "D"


class Effect(StrEnum):
    """What raising the value does, as far as that is certain without a forecast."""

    RAISES_MEMORY = "raises_memory"
    """More KV blocks or device memory may be in use."""
    LOWERS_MEMORY = "lowers_memory"
    RAISES_LATENCY = "raises_latency"
    """More concurrent work per engine step: token times grow unless a queue is relieved."""
    RELIEVES_QUEUE = "relieves_queue"
    SHEDS_LOAD = "sheds_load"
    """Some requests are refused."""
    MOVES_TRAFFIC = "moves_traffic"
    EVICTS_CACHE = "evicts_cache"
    PROTECTS = "protects"
    """Lowering risk is the purpose: allowed on the first sound evidence."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One knob of the stack.

    Attributes:
        name: unique, with the unit as suffix where there is one.
        unit: human-readable unit of the value.
        low, high: inclusive bounds of a numeric value; None for a choice.
        step_ratio: the longest allowed single step as a share of the present value (0.25 = a quarter); None = any.
        step_min: the shortest step that must always be allowed, in the setting's unit.
        choices: allowed names, empty for a numeric setting.
        default: value of a stack nobody has tuned.
        raising, lowering: what an increase and a decrease do.
        mechanism: how the real stack applies it.
        integral: only whole numbers are meaningful.
    """

    name: str
    layer: Layer
    scope: Scope
    unit: str
    setting_class: SettingClass
    mechanism: str
    default: Value
    low: float | None = None
    high: float | None = None
    step_ratio: float | None = 0.25
    step_min: float = 1.0
    choices: tuple[str, ...] = ()
    raising: frozenset[Effect] = frozenset()
    lowering: frozenset[Effect] = frozenset()
    integral: bool = True

    def problem_with(self, value: Value) -> str | None:
        """Why `value` is not acceptable, in words, or None when it is."""
        if self.choices:
            return (
                None
                if value in self.choices
                else f"{self.name} must be one of {', '.join(self.choices)}, not {value!r}"
            )
        if isinstance(value, str | bool) or value != value:
            return f"{self.name} must be a number in {self.unit}, not {value!r}"
        if self.integral and value != int(value):
            return f"{self.name} must be a whole number of {self.unit}, not {value!r}"
        if (self.low is not None and value < self.low) or (self.high is not None and value > self.high):
            return f"{self.name} must lie in {self.low:g} to {self.high:g} {self.unit}, not {value:g}"
        return None

    def effects(self, before: Value, after: Value) -> frozenset[Effect]:
        """The certain effects of going from `before` to `after`; a changed choice has those of `raising`."""
        if isinstance(before, str) or isinstance(after, str):
            return self.raising if before != after else frozenset()
        if after == before:
            return frozenset()
        return self.raising if after > before else self.lowering
