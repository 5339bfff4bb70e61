"""From what was found about each metric to one answer, with its reason."""

from collections.abc import Mapping
from typing import TypeAlias

from harness.limits import VerificationPlan
from harness.outcome import Measured
from harness.policy import Policy
from harness.verification.comparison import Comparison
from harness.verification.found import Found
from harness.verification.goal import Goal

GOODPUT = "slo_share"
EARLY_SHARE_HARM = 0.2
"""Fall of a share that is great harm."""

Answer: TypeAlias = tuple[Measured, str]


def judged(
    found: Mapping[str, Found], goal: Goal, policy: Policy, comparison: Comparison, *, early: bool, steady: bool
) -> Answer:
    """The answer at a look: not worse where waits were growing already, as they would have gone on to grow."""
    if early:
        measured, reason = _early(found, comparison, policy.verification)
    else:
        measured, reason = _weighed(found, goal, policy, comparison, steady)
    if measured is Measured.WORSE and not steady:
        return Measured.INCONCLUSIVE, f"waits were growing before the change already: {reason}"
    return measured, reason


def work_guards(goal: Goal) -> tuple[str, str]:
    """What is counted to see whether less work is done.

    A goal that refuses requests on purpose is held to those that are answered as promised, of all that were offered.
    """
    return (GOODPUT if goal.sheds else "served_share"), "error_share"


def less_work(found: Mapping[str, Found], comparison: Comparison, plan: VerificationPlan, *, early: bool) -> str | None:
    """How less work is done than before, in words; None when it is not. It is worse, whatever it does to latency."""
    for name in work_guards(comparison.goal):
        item, usual = found.get(name), plan.error_margin_ratio if name == "error_share" else plan.goodput_margin_ratio
        if item is None:
            continue
        margin = EARLY_SHARE_HARM if early else usual
        last = comparison.level(item.metric, comparison.before[-1:]) if early else None
        # Work is counted, not modelled: what the load would explain must also be seen in the plain figures.
        if item.worse(margin) and item.harm_since(item.before if last is None else last) >= margin:
            return f"{item.words}: less work is done"
    return None


def _early(found: Mapping[str, Found], comparison: Comparison, plan: VerificationPlan) -> Answer:
    """Great harm, against all that was measured before and against the last minutes: trouble that began there stays."""
    for item in found.values():
        limit = plan.early_harm_ratio if item.metric.scale.relative else EARLY_SHARE_HARM
        last = comparison.level(item.metric, comparison.before[-1:])
        if item.worse(limit) and (last is None or item.harm_since(last) >= limit):
            return Measured.WORSE, f"{item.words}: far worse already"
    return Measured.INCONCLUSIVE, "no sign of great harm yet"


def _weighed(found: Mapping[str, Found], goal: Goal, policy: Policy, comparison: Comparison, steady: bool) -> Answer:
    goals = [found[name] for name in goal.metrics if name in found]
    if not goals:
        return Measured.UNMEASURED, f"none of {', '.join(goal.metrics)} was measured on both sides"
    gains = [item for item in goals if item.better]
    harms = [
        item
        for item in found.values()
        if _harmed(item, policy.verification) and _counts(item, bool(gains), found, policy, comparison)
    ]
    if harms and (steady or not gains):
        return Measured.WORSE, "; ".join(item.words for item in harms)
    if gains:
        return Measured.IMPROVED, "; ".join(item.words for item in gains)
    return Measured.INCONCLUSIVE, "no clear effect: " + "; ".join(item.words for item in goals)


def _harmed(item: Found, plan: VerificationPlan) -> bool:
    margin = plan.harm_margin_ratio if item.metric.scale.relative else plan.goodput_margin_ratio
    return not item.metric.counted and item.worse(margin)


def _counts(item: Found, gained: bool, found: Mapping[str, Found], policy: Policy, comparison: Comparison) -> bool:
    """Whether a harm decides.

    Token times may rise when a queue is relieved. With a gain end to end, or where whole answers did not get slower,
    that is a trade as long as the figure stays well inside its promise. A figure about which nothing is promised is
    harm, unless there is a gain and no fewer requests keep what is promised.
    """
    limits = [item.metric.limit(block.of(comparison.goal.target), policy.slo) for block in comparison.after]
    known = [limit for limit in limits if limit is not None]
    promises, answers = found.get("slo_share"), found.get("e2e_per_token_s")
    if not known:
        return not gained or promises is None or promises.harm.point > 0
    if not gained and (answers is None or answers.harm.point > 0):
        return True
    return item.after > policy.latency.slo_max_ratio * min(known)
