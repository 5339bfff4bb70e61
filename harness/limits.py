"""The parts of a policy: limits of the gate, and windows and margins by which a change is judged. Frozen."""

from collections.abc import Mapping
from typing import Annotated, TypeAlias, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, field_validator

from stack.catalogue import setting_named
from stack.errors import UnknownSettingError
from stack.setting import SettingClass

Number = TypeVar("Number")

CLASSES = {SettingClass.A.value, SettingClass.B.value, SettingClass.C.value}


def setting_names(value: object) -> frozenset[str]:
    """The names in a list, each known to the catalogue.

    Raises:
        ValueError: it is no list of names, or one is unknown.
    """
    if not isinstance(value, (list, tuple, frozenset)) or not all(isinstance(name, str) for name in value):
        raise ValueError("expected a list of setting names")
    for name in value:
        try:
            setting_named(name)
        except UnknownSettingError as error:
            raise ValueError(str(error)) from error
    return frozenset(value)


def _of_all_classes(value: Mapping[str, Number]) -> Mapping[str, Number]:
    if set(value) != CLASSES:
        raise ValueError(f"expected a value for each of the classes A, B and C, found {', '.join(sorted(value))}")
    return value


Seconds = Annotated[float, Field(gt=0, le=1e7)]
Ratio = Annotated[float, Field(gt=0, le=1)]
Count = Annotated[int, Field(ge=1, le=1000)]
WithinADay = Annotated[float, Field(gt=0, le=86_400)]
"""The gate is told of one day's changes."""
WithinTwoHours = Annotated[float, Field(gt=0, le=7_200)]
"""It is told of three hours' refusals, and counts those of one."""
SettingNames = Annotated[frozenset[str], BeforeValidator(setting_names)]
PerClass: TypeAlias = Annotated[Mapping[str, Number], AfterValidator(_of_all_classes)]


class Part(BaseModel):
    """What all parts have in common: frozen, exact types, no unknown key."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class MemoryLimits(Part):
    """KV blocks and device memory that a change raising memory use must leave free."""

    kv_usage_max_ratio: Ratio
    device_free_min_bytes: Annotated[float, Field(ge=0)]
    device_free_min_ratio: Ratio
    fragmented_ratio: Ratio


class LatencyLimits(Part):
    """Share of an SLO from which on nothing may make latency worse."""

    slo_max_ratio: Ratio


class EvidenceLimits(Part):
    """What the facts behind a change must be: young, enough of them, and not contradicted by another source."""

    age_max_s: Annotated[float, Field(gt=0, le=30)]
    history_min_s: Seconds
    scrapes_min: Annotated[int, Field(ge=2, le=1000)]
    clock_skew_max_s: Annotated[float, Field(gt=0, le=30)]
    disagreement_max_ratio: Ratio
    disagreement_min_requests: Annotated[float, Field(ge=0, le=1e6)]
    sources_min: Annotated[int, Field(ge=1, le=3)]
    behind_ratio: Annotated[float, Field(gt=1, le=100)]


class Pace(Part):
    """How often settings may move, and what ends the loop's authority to move them by itself."""

    cooldown_floor_s: Annotated[float, Field(ge=30, le=1e7)]
    cooldown_s: PerClass[Annotated[float, Field(ge=30, le=1e7)]]
    per_hour: PerClass[Count]
    per_day: Count
    in_probation_max: Annotated[int, Field(ge=1, le=3)]
    reversal_s: Seconds
    reversals_per_hour_max: Count
    reversal_freeze_s: WithinADay
    rollbacks_per_hour_max: Count
    trip_s: WithinADay
    hard_stop_deny_s: WithinADay
    stand_down_s: WithinADay
    refusals_per_hour_max: Count
    refusal_pause_s: WithinTwoHours
    slo_share_gain_min_ratio: Ratio
    latency_gain_min_ratio: Ratio


class HealthLimits(Part):
    """What must be left of the pool after a change, and when a restart is allowed."""

    replicas_min: Count
    limit_left_min_ratio: Ratio
    limit_left_min_requests: Count
    restart_kv_usage_max_ratio: Ratio
    sick_token_time_ratio: Annotated[float, Field(gt=1, le=100)]


class BlastLimits(Part):
    """How much the first application of a setting may touch, until it was kept once within a day."""

    traffic_moved_max_ratio: Ratio
    fleet_wide_first: SettingNames


class Bounds(Part):
    """An admin's narrower bounds of one numeric setting, both inclusive, in its unit."""

    low: float
    high: float


class EnvelopeLimits(Part):
    """What an envelope may ask for at most; see harness.gate.envelope_check."""

    lasts_max_s: WithinADay
    ranges_max: Count
    guards_max: Count
    every_min_s: Annotated[float, Field(ge=1, le=3600)]
    guard_strikes: Count


class ShadowBar(Part):
    """What a setting's shadow record must show before the setting may act by itself; see harness.shadow.bar."""

    decisions_min: Count
    within_ratio: Ratio
    share_min: Ratio
    harmful_max: Annotated[int, Field(ge=0, le=1000)]
    repeat_s: Seconds


class VerificationPlan(Part):
    """Windows and margins of the measured comparison; see harness.verification.verify."""

    settle_s: Seconds
    first_look_s: Seconds
    block_s: Annotated[float, Field(ge=30, le=3600)]
    before_s: Seconds
    looks_s: Annotated[tuple[Seconds, ...], Field(min_length=1)]
    blind_grace_s: Seconds
    alpha_ratio: Annotated[float, Field(gt=0, le=0.2)]
    harm_margin_ratio: Ratio
    early_harm_ratio: Ratio
    goodput_margin_ratio: Ratio
    error_margin_ratio: Ratio
    extrapolation_ratio: Ratio
    hard_stop_strikes: Count
    hard_stop_error_ratio: Ratio
    hard_stop_slo_ratio: Annotated[float, Field(ge=1, le=100)]
    rollback_retry_s: Seconds

    @field_validator("looks_s", mode="before")
    @classmethod
    def _ascending(cls, value: object) -> object:
        if isinstance(value, list) and value == sorted(value):
            return tuple(value)
        raise ValueError("expected a list of seconds in ascending order")

    @property
    def longest_s(self) -> float:
        """Seconds of measurement after which there must be a verdict."""
        return self.looks_s[-1]
