"""The planner without a language model: rank problems, try values against the forecast under the gate, pick one."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import islice
from time import monotonic

from agent.inside import inside, worth_a_move
from agent.planner import Considered, Plan, PlanContext
from agent.trend import needless
from agent.usage import Usage
from agent.worth import enough, score_of
from harness.action import Action, Forecast
from harness.diagnosis import Finding
from harness.mode import Mode
from harness.verdict import Ruling
from skills.candidates import candidates
from stack.setting import Value
from stack.snapshot import FLEET

MOST_CANDIDATES = 25
"""Screened per finding, each in two short rehearsals."""
FINALISTS = 3
"""The best of those screened, which get a full forecast."""
BY_FORECAST = frozenset({"memory_headroom", "latency_headroom", "minimum_gain"})
"""Gate rules whose answer a forecast may change."""
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
        lasting = context.persistence.lasting(tunable, inside=context.leave is not None)
        if not lasting:
            return None, f"{tunable[0].cause} on {tunable[0].target} must last longer before a change"
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

    All are screened, as the load was and at twice its rate; the best few are then forecast in full. Every candidate
    that was looked at is added to `considered` with what became of it.
    """
    actions = islice(inside(context.leave, candidates(finding, context.skills)), MOST_CANDIDATES)
    tried = [_try(action, finding, context, context.screen or context.forecast) for action in actions]
    best = best_first([item.action for item in tried if item.kept])
    if context.screen is None:
        considered.extend(tried)
        return best
    confirmed = {_key(action): _confirm(action, finding, context) for action in best[:FINALISTS]}
    considered.extend(confirmed.get(_key(item.action), item) for item in tried)
    return best_first([item.action for item in confirmed.values() if item.kept])


def _key(action: Action) -> tuple[str, str, Value]:
    return action.setting, action.target, action.after


def best_first(actions: list[Action]) -> tuple[Action, ...]:
    """Remedies on the finding's own layer first, as a guard elsewhere only hides the cause; then by forecast.

    Among the former one replica comes before the pool: less is at stake, and the others show what it did.
    """
    return tuple(sorted(actions, key=_rank))


def _rank(action: Action) -> tuple[bool, bool, float]:
    elsewhere = action.layer is not action.declaration.layer
    return elsewhere, not elsewhere and action.target == FLEET, -score_of(action)


def _confirm(action: Action, finding: Finding, context: PlanContext) -> Considered:
    """A screened action looked at again with a full forecast; what it does at twice the load is kept."""
    stressed = {} if action.forecast is None else action.forecast.stressed

    def full(candidate: Action) -> Forecast | None:
        forecast = context.forecast(candidate)
        return None if forecast is None else replace(forecast, stressed=stressed)

    return _try(action, finding, context, full)


def _try(
    action: Action, finding: Finding, context: PlanContext, forecast: Callable[[Action], Forecast | None]
) -> Considered:
    refusal = _refusal(action, context)
    if refusal:
        return Considered(action, False, refusal)
    action = action.with_forecast(forecast(action))
    verdict = context.check(action)
    if verdict.ruling is Ruling.DENY:
        return Considered(action, False, f"gate, {verdict.hits[0].rule}: {verdict.hits[0].detail}")
    return Considered(action, *enough(action, finding, worth_a_move(context.leave, context.policy.pace)))


def _refusal(action: Action, context: PlanContext) -> str:
    """Why `action` is out of the question whatever the forecast says, so that none has to be made; or nothing."""
    if (action.setting, action.target) in context.asked:
        return "it was proposed lately"
    if (action.setting, action.target, action.after) in context.undone:
        return "it was undone lately"
    if needless(action, context.skills.snapshot):
        return "the queue is emptying by itself"
    for hit in context.check(action).hits:
        if hit.ruling is Ruling.DENY and hit.rule not in BY_FORECAST:
            return f"gate, {hit.rule}: {hit.detail}"
        if hit.ruling is Ruling.ASK and hit.rule not in BY_FORECAST and context.asked and context.mode is Mode.AUTO:
            return f"one question at a time: {hit.detail}"
    return ""


def _nothing_to_do(context: PlanContext) -> str:
    problems = context.diagnosis.problems
    if not problems:
        return "nothing needs attention"
    first = problems[0]
    return f"not tunable: {first.claim} {first.advice}".strip()
