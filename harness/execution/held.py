"""What a stack holds on the targets of an action, against what its permit says: plain comparisons."""

from collections.abc import Mapping
from typing import TypeAlias

from harness.journal.record import Record, Step
from stack.catalogue import in_words
from stack.setting import Value

Held: TypeAlias = Mapping[str, Value]
"""Values read back, by target."""


def steps_of(record: Record) -> tuple[Step, ...]:
    """The writes that its permit allows; none without a permit."""
    return record.permit.steps if record.permit else ()


def same(one: Value, other: Value) -> bool:
    """Whether two values are the same setting; a stack may give 40 back as 40.0."""
    if isinstance(one, str) or isinstance(other, str):
        return one == other
    return abs(one - other) <= 1e-6 * max(1.0, abs(other))


def holds_former(record: Record, held: Held) -> bool:
    """Whether every target has the value from before."""
    return all(same(held[step.target], step.pre) for step in steps_of(record))


def holds_wanted(record: Record, held: Held) -> bool:
    """Whether every target has the new value."""
    return all(same(held[step.target], step.wanted) for step in steps_of(record))


def foreign(record: Record, held: Held) -> str | None:
    """Who else wrote, in words: a value that is neither the former nor the wanted one; None when there is none."""
    for step in steps_of(record):
        value = held[step.target]
        if not same(value, step.pre) and not same(value, step.wanted):
            expected = f"expected {in_words(step.pre)} or {in_words(step.wanted)} on {step.target}"
            found = ", ".join(f"{target} {in_words(value)}" for target, value in held.items())
            return f"{expected}, read back {found}: somebody else wrote, left alone"
    return None
