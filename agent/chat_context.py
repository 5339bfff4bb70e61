"""What a conversation may look at and do: everything a planner may, and put one change on the path to a person."""

from collections.abc import Callable
from dataclasses import dataclass

from agent.events import Proposed
from agent.planner import PlanContext
from harness.action import Action
from harness.role import Role


@dataclass(frozen=True, kw_only=True)
class ChatContext:
    """One question's situation.

    Attributes:
        changes: what was changed and what waits, in plain words.
        propose: the gate, then a row that waits for an approval; the only way from a conversation to a change.
        user: who asks.
        role: what they are; without the right to ask for changes there is no way from what they say to one.
    """

    planning: PlanContext
    changes: str
    propose: Callable[[Action], Proposed]
    user: str = "operator"
    role: Role = Role.OPERATOR
