"""An envelope written down by a person: a TOML file with `lasts_s`, `[[range]]` and `[[guard]]` tables."""

import tomllib
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from harness.envelope.envelope import Envelope, Guard, Range
from stack.errors import InputError
from stack.snapshot import FLEET, Signal


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class _Range(_Table):
    setting: str
    target: str = FLEET
    low: float
    high: float
    step: float
    every_s: float
    back_after_s: float


class _Guard(_Table):
    signal: Signal
    at_most: float


class _File(_Table):
    lasts_s: float
    reason: str = ""
    ranges: tuple[_Range, ...] = Field(alias="range", min_length=1)
    guards: tuple[_Guard, ...] = Field(default=(), alias="guard")


def read_envelope(path: Path, *, requested_by: str) -> Envelope:
    """The envelope that the file at `path` describes. Whether it may be allowed is for the gate to say.

    Raises:
        InputError: it cannot be read, or a key or value is unknown or missing; one line naming file and key.
    """
    try:
        table = _File.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: the envelope cannot be read: {error}") from error
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: not valid TOML: {error}") from error
    except ValidationError as error:
        raise InputError(f"{path}: {_problem(error)}") from error
    return Envelope(
        ranges=tuple(Range(**one.model_dump()) for one in table.ranges),
        lasts_s=table.lasts_s,
        guards=tuple(Guard(one.signal, one.at_most) for one in table.guards),
        reason=table.reason,
        requested_by=requested_by,
    )


def _problem(error: ValidationError) -> str:
    problem = error.errors(include_url=False, include_context=False)[0]
    return f"{'.'.join(str(part) for part in problem['loc'])}: {problem['msg']}".replace("\n", " ")
