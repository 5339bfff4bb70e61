"""What picks the action: a planner reads a context and returns a plan; it acts on nothing."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from agent.persistence import Persistence
from agent.usage import Usage
from harness.action import Action, Forecast
from harness.diagnosis import Diagnosis, Finding
from harness.envelope.envelope import Leave
from harness.mode import Mode
from harness.policy import Policy
from harness.verdict import Verdict
from skills.skill import SkillContext
from stack.setting import Value


@dataclass(frozen=True, kw_only=True)
class PlanContext:
    """All a planner may look at.

    Attributes:
        skills: what skills are given: snapshot, objective, enabled settings, episodes.
        check: the gate as it would rule now.
        forecast: predicted effect of a change; None when there is no sound one.
        screen: a rougher one, also of twice the load, to rank many candidates by; None uses `forecast`.
        undone: (setting, target, value) rolled back lately, which are not tried again.
        asked: (setting, target) of proposals that wait for a person, or were recorded lately; not proposed again.
        persistence: how long each problem has held.
        memory: similar episodes and changes so far in plain words, for a model.
        policy: says which predicted gain is worth a change.
        leave: the envelope in force, inside which small moves are made at once.
    """

    diagnosis: Diagnosis
    skills: SkillContext
    check: Callable[[Action], Verdict]
    forecast: Callable[[Action], Forecast | None]
    persistence: Persistence
    policy: Policy
    undone: frozenset[tuple[str, str, Value]] = frozenset()
    asked: frozenset[tuple[str, str]] = frozenset()
    memory: str = ""
    mode: Mode = Mode.APPROVE
    leave: Leave | None = None
    screen: Callable[[Action], Forecast | None] | None = None


@dataclass(frozen=True)
class Considered:
    """A candidate that was looked at, whether it was worth making, and why or why not."""

    action: Action
    kept: bool
    why: str


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a planner wants done.

    Attributes:
        planner: who spoke, for people.
        reason: why this action, or why none, in one sentence.
        action: the change; None when nothing should be done now.
        not_tunable: problems out of our reach; each finding's `advice` says whom to ask.
        degraded: why the planner could not do its work; empty when it could.
        considered: candidates that were looked at.
        usage: what it cost.
    """

    planner: str
    reason: str
    action: Action | None = None
    not_tunable: tuple[Finding, ...] = ()
    degraded: str = ""
    considered: tuple[Considered, ...] = ()
    usage: Usage = field(default_factory=Usage)


class Planner(Protocol):
    """One way of choosing."""

    @property
    def name(self) -> str:
        """Who speaks, for example `search, no LLM configured`."""
        ...

    def plan(self, context: PlanContext) -> Plan:
        """The next change, or none. It has no side effect and never raises for want of data."""
        ...
