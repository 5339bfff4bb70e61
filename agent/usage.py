"""What a planner may spend, and what it has spent."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Most a model may spend on one plan or one answer.

    Attributes:
        calls: skill calls.
        seconds: wall time.
        tokens: prompt and completion tokens together.
    """

    calls: int = 8
    seconds: float = 60.0
    tokens: int = 20_000


@dataclass(frozen=True)
class Usage:
    """What was spent."""

    calls: int = 0
    seconds: float = 0.0
    tokens: int = 0
