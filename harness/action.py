"""An action: one setting's new value on one target, with its reason and predicted effect."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from stack.catalogue import setting_named
from stack.layer import Layer
from stack.setting import Effect, Setting, Value


class Trust(StrEnum):
    """How far a forecast may be believed."""

    TRUSTED = "trusted"
    DOUBTED = "doubted"
    """It has been wrong lately, or the situation is outside its range; shown, not relied on."""


@dataclass(frozen=True)
class Predicted:
    """One predicted quantity without and with the change, with an 80 % interval on the latter."""

    before: float
    after: float
    low: float
    high: float


@dataclass(frozen=True)
class Forecast:
    """Predicted effect of a change over a horizon.

    Attributes:
        horizon_s: how far it looks.
        effects: by name: `e2e_p99_s`, `ttft_p99_s`, `itl_mean_s`, `slo_share`, `kv_usage_p95_ratio`,
            `finished_per_s` (requests, a backlog's included).
        trust: whether the gate may rely on it.
        note: why it is doubted, or what it assumed, in one sentence.
    """

    horizon_s: float
    effects: Mapping[str, Predicted]
    trust: Trust = Trust.TRUSTED
    note: str = ""


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
        requested_by: `agent`, or a user's name.
    """

    setting: str
    target: str
    before: Value
    after: Value
    cause: str
    layer: Layer
    reason: str
    forecast: Forecast | None = None
    requested_by: str = "agent"
    comment: str = field(default="", compare=False)
    """Free text of a model: shown as unverified, never interpreted."""

    @property
    def declaration(self) -> Setting:
        """The catalogue's declaration of the setting."""
        return setting_named(self.setting)

    @property
    def certain_effects(self) -> frozenset[Effect]:
        """What the change does for certain, by the catalogue."""
        return self.declaration.effects(self.before, self.after)

    def with_forecast(self, forecast: Forecast | None) -> "Action":
        """The same action with its predicted effect, or without one when none could be made."""
        return replace(self, forecast=forecast)
