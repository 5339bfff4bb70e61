"""What a person may answer to a proposed action."""

from dataclasses import dataclass, replace
from typing import TypeAlias

from harness.action import Action
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

    def of(self, proposed: Action) -> Action:
        """The change that replaces `proposed`; its forecast was for another value."""
        return replace(proposed, after=self.after, requested_by=self.by, forecast=None)


@dataclass(frozen=True)
class Reject:
    """Do not do it."""

    by: str
    reason: str = ""


Decision: TypeAlias = Approve | Edit | Reject
