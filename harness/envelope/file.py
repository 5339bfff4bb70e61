"""An envelope written down by a person: a TOML file with `lasts_s`, `[[range]]` and `[[guard]]` tables."""

import tomllib
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from harness.envelope.envelope import Envelope, Guard, Range
from stack.errors import InputError
from stack.problem import first_problem
from stack.snapshot import FLEET, Signal


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, strict=True)


class _Range(_Table):
    setting: str
    target: str = FLEET
    low: float
    high: float
    step: float
    every_s: float
    back_after_s: float


class _Guard(_Table):
    signal: Signal = Field(strict=False)
    at_most: float


class _File(_Table):
    lasts_s: float
    reason: str = ""
    ranges: tuple[_Range, ...] = Field(alias="range", min_length=1, strict=False)
    guards: tuple[_Guard, ...] = Field(default=(), alias="guard", strict=False)


def read_envelope(path: Path, *, requested_by: str) -> Envelope:
    """The envelope that the file at `path` describes. Whether it may be allowed is for the gate to say.

    Raises:
        InputError: it cannot be read, or a key or value is unknown or missing; one line naming file and key.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: the envelope cannot be read: {error}") from error
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # numbers too long, and tables too deep, are neither of TOML's errors
        raise InputError(f"{path}: not valid TOML: {error}") from error
    try:
        table = _File.model_validate(document)
    except ValidationError as error:
        raise InputError(f"{path}: {first_problem(error)}") from error
    return Envelope(
        ranges=tuple(Range(**one.model_dump()) for one in table.ranges),
        lasts_s=table.lasts_s,
        guards=tuple(Guard(one.signal, one.at_most) for one in table.guards),
        reason=table.reason,
        requested_by=requested_by,
    )
