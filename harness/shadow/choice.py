"""A decision that was not acted on, with all that is needed to judge it later."""

from dataclasses import dataclass

from harness.action import Action
from stack.snapshot import Snapshot


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What was decided in shadow.

    Attributes:
        action: the change that was proposed; None when the decision was to leave the stack as it was.
        action_id: its row in the journal.
        legal: the other changes that could have been chosen, each of which the gate would have let pass.
        snapshot: what was seen then.
        decided_s: stack time.
        window_s: how long after it the effect is looked at.
        planner: who decided: a record earned by one planner says nothing about another.
    """

    action: Action | None
    action_id: int | None = None
    legal: tuple[Action, ...]
    snapshot: Snapshot
    decided_s: float
    window_s: float
    planner: str
