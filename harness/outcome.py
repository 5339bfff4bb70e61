"""How an action ended. There are four endings and no fifth."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

HARD_STOP = "hard_stop"
"""Method of a verification that a hard stop cut short."""


class Ending(StrEnum):
    """The four endings."""

    KEPT = "kept"
    ROLLED_BACK = "rolled_back"
    NOTHING_DONE = "nothing_done"
    NEEDS_PERSON = "needs_person"


class Measured(StrEnum):
    """What verification found. Only `IMPROVED` keeps an optimising change."""

    IMPROVED = "improved"
    WORSE = "worse"
    INCONCLUSIVE = "inconclusive"
    UNMEASURED = "unmeasured"


@dataclass(frozen=True)
class Verification:
    """The measured effect of a change.

    Attributes:
        measured: the answer.
        reason: why, in one sentence with numbers.
        metrics: by metric name, a mapping with `before`, `after`, `ratio`, `low`, `high` (interval of the ratio).
        method: `controls`, `load_adjusted` or `HARD_STOP`.
        window_s: seconds measured after the change settled.
    """

    measured: Measured
    reason: str
    metrics: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    method: str = ""
    window_s: float = 0.0


@dataclass(frozen=True)
class Outcome:
    """How an action ended and what the stack holds since."""

    ending: Ending
    reason: str
    holds: float | str | None
    verification: Verification | None = None
