"""An action: one setting's new value on one target, with its reason and predicted effect."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from stack.catalogue import setting_named
from stack.errors import UnknownSettingError
from stack.layer import Layer
from stack.setting import Effect, Setting, SettingClass, Value

AGENT = "agent"
"""Who asks for a change when no person does."""


class Trust(StrEnum):
    """How far a forecast may be believed."""

    TRUSTED = "trusted"
    DOUBTED = "doubted"
    """It has been wrong lately, or the situation is outside its range; shown, not relied on."""


@dataclass(frozen=True)
class Predicted:
    """One predicted quantity without and with the change, with 80 % intervals.

    Attributes:
        before, after: best guess of what will be seen without and with the change.
        low, high: 80 % interval of what will be seen with the change.
        move_low, move_high: 80 % interval of the difference that the change makes on the same arrivals; narrower, as
            most of what is not known would be the same without it.
    """

    before: float
    after: float
    low: float
    high: float
    move_low: float | None = None
    move_high: float | None = None

    @property
    def conclusive(self) -> bool:
        """Whether the sign of the effect is sure: nothing is left of zero in its interval."""
        if self.move_low is None or self.move_high is None:
            return self.before != self.after
        return self.move_low > 0 or self.move_high < 0

    @property
    def reserve(self) -> str:
        """What is to be said beside the figures: empty where the sign of the effect is sure."""
        if self.conclusive:
            return ""
        return "no effect" if self.before == self.after else "inconclusive"


@dataclass(frozen=True)
class Forecast:
    """Predicted effect of a change over a horizon.

    Attributes:
        horizon_s: how far it looks.
        effects: by name: `e2e_p99_s`, `ttft_p99_s`, `itl_mean_s`, `slo_share`, `kv_usage_p95_ratio`,
            `finished_per_s` (requests, a backlog's included).
        trust: whether the gate may rely on it.
        note: why it is doubted, or what it assumed, in one sentence.
        stressed: the same at twice the rate, where it was asked for.
    """

    horizon_s: float
    effects: Mapping[str, Predicted]
    trust: Trust = Trust.TRUSTED
    note: str = ""
    stressed: Mapping[str, Predicted] = field(default_factory=dict)

    @property
    def inert(self) -> bool:
        """Whether the change made no difference at all in any rehearsed future, like a limit nobody reaches."""
        rehearsed = (*self.effects.values(), *self.stressed.values())
        moved = any(one.before != one.after or one.move_low or one.move_high for one in rehearsed)
        return bool(rehearsed) and not moved


@dataclass(frozen=True, kw_only=True)
class Action:
    """A candidate change. It does nothing by itself: only harness.execution acts.

    Attributes:
        setting: name in the catalogue.
        target: a replica's name, or the fleet for a pool-wide change.
        before: value in force when it was proposed.
        after: value wanted, absolute.
        cause: code of the finding it answers.
        layer: layer of that finding.
        reason: one sentence for people.
        forecast: predicted effect, when there is one.
        requested_by: `AGENT`, or a user's name.
        tainted: a model chose it that had read text from outside (names, log lines, a conversation).
    """

    setting: str
    target: str
    before: Value
    after: Value
    cause: str
    layer: Layer
    reason: str
    forecast: Forecast | None = None
    requested_by: str = AGENT
    tainted: bool = False
    comment: str = field(default="", compare=False)
    """Free text of a model: shown as unverified, never interpreted."""

    @property
    def declaration(self) -> Setting:
        """The catalogue's declaration of the setting."""
        return setting_named(self.setting)

    @property
    def setting_class(self) -> SettingClass:
        """The class of its setting; an unknown setting is never changed, which is what class D says."""
        try:
            return self.declaration.setting_class
        except UnknownSettingError:
            return SettingClass.D

    @property
    def certain_effects(self) -> frozenset[Effect]:
        """What the change does for certain, by the catalogue."""
        return self.declaration.effects(self.before, self.after)

    def with_forecast(self, forecast: Forecast | None) -> "Action":
        """The same action with its predicted effect, or without one when none could be made."""
        return replace(self, forecast=forecast)
