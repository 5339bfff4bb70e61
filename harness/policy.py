"""The policy: what is allowed, how fast, and how a change is judged. Frozen; loaded from TOML."""

import tomllib
from collections.abc import Iterable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

from pydantic import ConfigDict, Field, ValidationError, field_validator

from harness.limits import (
    BlastLimits,
    Bounds,
    EnvelopeLimits,
    EvidenceLimits,
    HealthLimits,
    LatencyLimits,
    MemoryLimits,
    Pace,
    Part,
    PerClass,
    Seconds,
    SettingNames,
    ShadowBar,
    VerificationPlan,
    setting_names,
)
from harness.objective import Slo
from stack.errors import InputError
from stack.problem import first_problem
from stack.setting import SettingClass

SHIPPED = "policy.toml"


class Policy(Part):
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

    enabled: SettingNames
    vouched: SettingNames
    owned_elsewhere: Mapping[str, Annotated[str, Field(min_length=1, max_length=100)]]
    bounds: Mapping[str, Bounds]
    approval_expiry_s: PerClass[Seconds]
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

    @field_validator("owned_elsewhere", "bounds")
    @classmethod
    def _by_setting(cls, value: Mapping[str, Any]) -> Mapping[str, Any]:
        setting_names(list(value))
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

    def expiry_s(self, kind: SettingClass) -> float:
        """Wall time that a person has to decide on a change of this class; none for what is never changed."""
        return self.approval_expiry_s.get(kind.value, 0.0)

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
            raise InputError(f"{path or 'policy'}: {first_problem(error)}") from error


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
