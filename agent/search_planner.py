"""The planner without a language model: rank problems, try values against the forecast under the gate, pick one."""

from dataclasses import dataclass
from itertools import islice
from time import monotonic

from skills.candidates import candidates

from agent.planner import Considered, Plan, PlanContext
from agent.trend import needless
from agent.usage import Usage
from agent.worth import enough, score_of
from harness.action import Action
from harness.diagnosis import Finding
from harness.verdict import Ruling

MOST_CANDIDATES = 25
"""Forecasts per plan: about a quarter of a second of one core."""
RIVAL_RATIO = 0.5
"""A problem with less than this share of the best one's weight is likely its symptom and is not acted on."""


@dataclass(frozen=True)
class SearchPlanner:
    """Chooses by search over the enabled settings."""

    name: str = "search, no LLM configured"

    def plan(self, context: PlanContext) -> Plan:
        """The candidate with the best forecast for the best problem that has one worth making."""
        started_s = monotonic()
        problems = context.diagnosis.problems
        escalated = tuple(finding for finding in problems if not finding.tunable)
        considered: list[Considered] = []
        action, reason = self._choose(context, considered)
        return Plan(
            planner=self.name,
            reason=reason,
            action=action,
            not_tunable=escalated,
            considered=tuple(considered),
            usage=Usage(len(considered), monotonic() - started_s, 0),
        )

    def _choose(self, context: PlanContext, considered: list[Considered]) -> tuple[Action | None, str]:
        tunable = rivals(context)
        if not tunable:
            return None, _nothing_to_do(context)
        lasting = context.persistence.lasting(tunable)
        if not lasting:
            return None, f"{tunable[0].cause} on {tunable[0].target} must hold for another cycle before a change"
        for finding in lasting:
            best = next(iter(search(finding, context, considered)), None)
            if best is not None:
                return best, best.reason
        return None, f"no enabled setting is predicted to help against {lasting[0].cause} on {lasting[0].target}"


def rivals(context: PlanContext) -> tuple[Finding, ...]:
    """Tunable problems, best first, that are not dwarfed by a bigger problem."""
    problems = context.diagnosis.problems
    least = RIVAL_RATIO * problems[0].weight if problems else 0.0
    return tuple(finding for finding in problems if finding.tunable and finding.weight >= least)


def search(finding: Finding, context: PlanContext, considered: list[Considered]) -> tuple[Action, ...]:
    """Candidates against `finding` that the gate would not deny and the forecast supports, best first.

    Every candidate that was looked at is added to `considered` with what became of it.
    """
    tried = [_try(action, finding, context) for action in islice(candidates(finding, context.skills), MOST_CANDIDATES)]
    considered.extend(tried)
    return tuple(sorted((item.action for item in tried if item.kept), key=score_of, reverse=True))


def _try(action: Action, finding: Finding, context: PlanContext) -> Considered:
    if (action.setting, action.target, action.after) in context.undone:
        return Considered(action, False, "it was undone lately")
    if needless(action, context.skills.snapshot):
        return Considered(action, False, "the queue is emptying by itself")
    forecast = context.forecast(action)
    action = action if forecast is None else action.with_forecast(forecast)
    verdict = context.check(action)
    if verdict.ruling is Ruling.DENY:
        return Considered(action, False, "; ".join(f"gate, {hit.rule}: {hit.detail}" for hit in verdict.hits[:1]))
    return Considered(action, *enough(action, finding, context.policy.pace))


def _nothing_to_do(context: PlanContext) -> str:
    problems = context.diagnosis.problems
    if not problems:
        return "nothing needs attention"
    first = problems[0]
    return f"not tunable: {first.claim} {first.advice}".strip()
