"""The policy: what is allowed, how fast, and how a change is judged. Frozen; loaded from TOML."""

import tomllib
from collections.abc import Iterable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from harness.objective import Slo
from stack.catalogue import setting_named
from stack.errors import InputError, UnknownSettingError
from stack.setting import SettingClass

Seconds = Annotated[float, Field(gt=0, le=1e7)]
Ratio = Annotated[float, Field(gt=0, le=1)]
Count = Annotated[int, Field(ge=1, le=1000)]
WithinADay = Annotated[float, Field(gt=0, le=86_400)]
"""The gate is told of one day's changes."""
WithinTwoHours = Annotated[float, Field(gt=0, le=7_200)]
"""It is told of three hours' refusals, and counts those of one."""

SHIPPED = "policy.toml"


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class MemoryLimits(_Part):
    """KV blocks and device memory that a change raising memory use must leave free."""

    kv_usage_max_ratio: Ratio
    device_free_min_bytes: Annotated[float, Field(ge=0)]
    device_free_min_ratio: Ratio
    fragmented_ratio: Ratio


class LatencyLimits(_Part):
    """Share of an SLO from which on nothing may make latency worse."""

    slo_max_ratio: Ratio


class EvidenceLimits(_Part):
    """What the facts behind a change must be: young, enough of them, and not contradicted by another source."""

    age_max_s: Annotated[float, Field(gt=0, le=30)]
    history_min_s: Seconds
    scrapes_min: Annotated[int, Field(ge=2, le=1000)]
    clock_skew_max_s: Annotated[float, Field(gt=0, le=30)]
    disagreement_max_ratio: Ratio
    disagreement_min_requests: Annotated[float, Field(ge=0, le=1e6)]
    sources_min: Annotated[int, Field(ge=1, le=3)]
    behind_ratio: Annotated[float, Field(gt=1, le=100)]


class Pace(_Part):
    """How often settings may move, and what ends the loop's authority to move them by itself."""

    cooldown_floor_s: Annotated[float, Field(ge=30, le=1e7)]
    cooldown_s: Mapping[str, Annotated[float, Field(ge=30, le=1e7)]]
    per_hour: Mapping[str, Count]
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

    @field_validator("cooldown_s", "per_hour")
    @classmethod
    def _per_class(cls, value: Mapping[str, Any]) -> Mapping[str, Any]:
        wanted = {SettingClass.A.value, SettingClass.B.value, SettingClass.C.value}
        if set(value) != wanted:
            raise ValueError(f"expected a value for each of the classes A, B and C, found {', '.join(sorted(value))}")
        return value


class HealthLimits(_Part):
    """What must be left of the pool after a change, and when a restart is allowed."""

    replicas_min: Count
    restart_kv_usage_max_ratio: Ratio
    sick_token_time_ratio: Annotated[float, Field(gt=1, le=100)]


class BlastLimits(_Part):
    """How much the first application of a setting may touch, until it was kept once within a day."""

    traffic_moved_max_ratio: Ratio
    fleet_wide_first: frozenset[str]

    @field_validator("fleet_wide_first", mode="before")
    @classmethod
    def _known(cls, value: object) -> object:
        return _setting_names(value)


class Bounds(_Part):
    """An admin's narrower bounds of one numeric setting, both inclusive, in its unit."""

    low: float
    high: float


class EnvelopeLimits(_Part):
    """What an envelope may ask for at most; see harness.gate.envelope_check."""

    lasts_max_s: WithinADay
    ranges_max: Count
    every_min_s: Annotated[float, Field(ge=1, le=3600)]
    guard_strikes: Count


class ShadowBar(_Part):
    """What a setting's shadow record must show before the setting may act by itself; see harness.shadow.bar."""

    decisions_min: Count
    within_ratio: Ratio
    share_min: Ratio
    harmful_max: Annotated[int, Field(ge=0, le=1000)]
    repeat_s: Seconds


class VerificationPlan(_Part):
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


class Policy(_Part):
    """Everything the gate and the verification need to know that is not measured.

    Attributes:
        enabled: settings that may be changed.
        vouched: class A settings that may act by themselves in auto mode on a real stack without a shadow record,
            because an admin answers for them.
        owned_elsewhere: who else controls a setting, by the setting's name; what another one owns is never changed.
        bounds: by setting, in which it must stay beside the catalogue's bounds.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, arbitrary_types_allowed=True
    )

    enabled: frozenset[str]
    vouched: frozenset[str]
    owned_elsewhere: Mapping[str, Annotated[str, Field(min_length=1, max_length=100)]]
    bounds: Mapping[str, Bounds]
    approval_expiry_s: Seconds
    slo: Slo
    memory: MemoryLimits
    latency: LatencyLimits
    evidence: EvidenceLimits
    pace: Pace
    health: HealthLimits
    blast: BlastLimits
    verification: VerificationPlan
    envelope: EnvelopeLimits
    shadow: ShadowBar

    @field_validator("enabled", "vouched", mode="before")
    @classmethod
    def _known(cls, value: object) -> object:
        return _setting_names(value)

    @field_validator("owned_elsewhere", "bounds")
    @classmethod
    def _by_setting(cls, value: Mapping[str, Any]) -> Mapping[str, Any]:
        _setting_names(list(value))
        return value

    @field_validator("slo", mode="before")
    @classmethod
    def _promise(cls, value: object) -> object:
        if isinstance(value, Slo):
            return value
        if not isinstance(value, Mapping):
            raise ValueError("expected a table")
        unknown = sorted(set(value) - set(Slo.__dataclass_fields__))
        if unknown:
            raise ValueError(f"unknown key {unknown[0]!r}")
        for key, number in value.items():
            if isinstance(number, bool) or not isinstance(number, (int, float)) or not 0 <= number < 1e7:
                raise ValueError(f"{key} must be a number of seconds that is not negative, found {number!r}")
        return Slo(**value)

    @classmethod
    def load(
        cls, path: Path | None = None, *, enabled: Iterable[str] | None = None, slo: Slo | None = None
    ) -> "Policy":
        """The shipped policy, changed by what the file at `path` says, then by the arguments.

        Args:
            path: TOML with the same keys as the shipped policy.toml; any may be left out.
            enabled: names of the settings that may be changed, instead of the file's.
            slo: the promise to users, instead of the file's.

        Raises:
            InputError: the file cannot be read, or a key or value is unknown; one line naming file and key.
        """
        tables = tomllib.loads(files("harness").joinpath(SHIPPED).read_text(encoding="utf-8"))
        if path is not None:
            tables = _merged(tables, _read(path))
        if enabled is not None:
            tables["enabled"] = list(enabled)
        if slo is not None:
            tables["slo"] = slo
        try:
            return cls.model_validate(tables)
        except ValidationError as error:
            raise InputError(_one_line(error, path)) from error


def _setting_names(value: object) -> frozenset[str]:
    if not isinstance(value, (list, tuple, frozenset)) or not all(isinstance(name, str) for name in value):
        raise ValueError("expected a list of setting names")
    for name in value:
        try:
            setting_named(name)
        except UnknownSettingError as error:
            raise ValueError(str(error)) from error
    return frozenset(value)


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: the policy cannot be read: {error}") from error
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: not valid TOML: {error}") from error


def _merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in over.items():
        both_tables = isinstance(value, Mapping) and isinstance(merged.get(key), Mapping)
        merged[key] = _merged(merged[key], value) if both_tables else value
    return merged


def _one_line(error: ValidationError, path: Path | None) -> str:
    problem = error.errors(include_url=False, include_context=False)[0]
    key = ".".join(str(part) for part in problem["loc"])
    return f"{path or 'policy'}: {key}: {problem['msg']}, found {problem['input']!r}".replace("\n", " ")
