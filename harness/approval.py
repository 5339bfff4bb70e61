"""What a person may answer to a proposed action."""

from dataclasses import dataclass
from typing import TypeAlias

from stack.setting import Value


@dataclass(frozen=True)
class Approve:
    """Do exactly what was shown."""

    by: str


@dataclass(frozen=True)
class Edit:
    """Do it with another value; it goes back to the gate."""

    by: str
    after: Value


@dataclass(frozen=True)
class Reject:
    """Do not do it."""

    by: str
    reason: str = ""


Decision: TypeAlias = Approve | Edit | Reject
