"""What a session tells its listeners, typed and frozen."""

from dataclasses import dataclass
from typing import TypeAlias

from harness.action import Action
from harness.verdict import Verdict


@dataclass(frozen=True)
class Speaker:
    """Who answers, for example `search, no LLM configured`."""

    name: str


@dataclass(frozen=True)
class SkillCalled:
    """A skill was called and has answered."""

    name: str
    arguments: str
    seconds: float
    result: str = ""


@dataclass(frozen=True)
class AnswerText:
    """A piece of the answer; pieces follow one another without a separator."""

    text: str


@dataclass(frozen=True)
class Proposed:
    """A change asked for in the conversation has passed or failed the gate.

    Attributes:
        approval_id: what a person must decide on; None when the gate denied it.
        digest: of what is asked, see agent.session.Pending.
    """

    action: Action
    verdict: Verdict
    approval_id: int | None
    digest: str = ""


@dataclass(frozen=True)
class Degraded:
    """Part of the work could not be done; the reason in one line."""

    reason: str


Event: TypeAlias = Speaker | SkillCalled | AnswerText | Proposed | Degraded
