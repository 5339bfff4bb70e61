"""A wanted change of limits, as it comes in from outside: checked field by field."""

from dataclasses import dataclass
from typing import Any

from flashvector_vllm.limits import LIMIT_NAMES

LARGEST = 2**31 - 1
"""Highest number taken; more would not fit the integers of the engine's messages."""
PREEMPT, RESET = "preempt_excess", "reset"


class BadFieldsError(ValueError):
    """The change can't be understood.

    Attributes:
        errors: one line per bad field.
    """

    def __init__(self, errors: dict[str, str]) -> None:
        super().__init__("; ".join(f"{name}: {line}" for name, line in errors.items()))
        self.errors = errors


@dataclass(frozen=True)
class Change:
    """A wanted change.

    Attributes:
        values: limit -> wanted value, not yet fitted to any bounds.
        preempt_excess: push requests above the new cap back into the queue, instead of letting them end.
        reset: start from the boot limits.
    """

    values: dict[str, int]
    preempt_excess: bool = False
    reset: bool = False


def parse_change(document: Any) -> Change:
    """Read a change.

    Args:
        document: the decoded JSON: limit names with whole numbers, `preempt_excess` and `reset` with true or false.

    Raises:
        BadFieldsError: with one line per bad field.
    """
    if not isinstance(document, dict):
        raise BadFieldsError({"body": f"expected a JSON object, found {described(document)}"})
    if not document:
        raise BadFieldsError({"body": f"expected at least one of {', '.join((*LIMIT_NAMES, PREEMPT, RESET))}"})
    errors = {str(name)[:80]: line for name, value in document.items() if (line := _problem(name, value))}
    if errors:
        raise BadFieldsError(errors)
    values = {name: value for name, value in document.items() if name in LIMIT_NAMES}
    return Change(values, document.get(PREEMPT, False), document.get(RESET, False))


def _problem(name: Any, value: Any) -> str | None:
    if name in (PREEMPT, RESET):
        return None if isinstance(value, bool) else f"expected true or false, found {described(value)}"
    if name not in LIMIT_NAMES:
        return f"unknown; expected one of {', '.join((*LIMIT_NAMES, PREEMPT, RESET))}"
    if not whole(value) or not 0 <= value <= LARGEST:
        return f"expected a whole number from 0 to {LARGEST}, found {described(value)}"
    return None


def whole(value: Any) -> bool:
    """Whether it is an integer; JSON's true and false are not."""
    return isinstance(value, int) and not isinstance(value, bool)


def described(value: Any) -> str:
    """A value for an error line, cut short."""
    text = "a number of many digits" if whole(value) and abs(value) > LARGEST**2 else repr(value)
    return f"{text[:60]} ({type(value).__name__})"
