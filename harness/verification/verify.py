"""The verdict on a change: better, worse, or nobody can say. Pure; looks at blocks, never at the stack."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, log, log1p

from harness.outcome import Measured, Verification
from harness.policy import Policy, VerificationPlan
from harness.verification.block import Block, joined
from harness.verification.comparison import Comparison, comparable, onset_s, untouched
from harness.verification.goal import Goal
from harness.verification.metric import METRICS, Metric
from harness.verification.shift import shift_effect
from harness.verification.statistics import Interval

BLOCKS_BEFORE_MIN = 3
BLOCKS_AFTER_MIN = 3
EARLY_ALPHA = 0.002
SHARE_FLOOR = 0.01
"""A share below this is reported as if it were this, so that its ratio stays readable."""
LATENCY_GUARDS = ("ttft_mean_s", "ttft_p99_s", "itl_mean_s", "itl_p99_s", "e2e_per_token_s")
SHIFT_METRICS = ("e2e_per_token_s", "itl_mean_s")
WORK_GUARDS = ("served_share", "error_share")
"""A change that does less work is worse, whatever it does to latency."""


@dataclass(frozen=True)
class _Found:
    metric: Metric
    change: Interval
    before: float
    after: float

    @property
    def harm(self) -> Interval:
        """The change with worse counted positive."""
        c = self.change
        return c if self.metric.lower_is_better else Interval(-c.point, -c.high, -c.low)

    @property
    def better(self) -> bool:
        return self.harm.high < 0

    def harm_since(self, level: float) -> float:
        """The plain change from `level`, on the metric's own scale, with worse counted positive."""
        floor = self.metric.floor
        rise = log(max(self.after, floor) / max(level, floor)) if self.metric.logarithmic else self.after - level
        return rise if self.metric.lower_is_better else -rise

    def worse(self, margin: float) -> bool:
        return self.harm.low > 0 and self.harm.point >= margin

    @property
    def words(self) -> str:
        if not self.metric.logarithmic:
            return f"{self.metric.name} {self.before:.3f} to {self.after:.3f} (change {_points(self.change)})"
        ratio = exp(self.change.point) - 1
        low, high = exp(self.change.low) - 1, exp(self.change.high) - 1
        return f"{self.metric.name} {ratio:+.0%} at equal load ({low:+.0%} to {high:+.0%})"

    def numbers(self) -> Mapping[str, float]:
        if self.metric.logarithmic:
            ratio, low, high = exp(self.change.point), exp(self.change.low), exp(self.change.high)
        else:
            base = max(self.before, SHARE_FLOOR)
            ratio, low, high = ((base + d) / base for d in (self.change.point, self.change.low, self.change.high))
        return {"before": self.before, "after": self.after, "ratio": ratio, "low": low, "high": high}


def verify(
    before: Sequence[Block],
    after: Sequence[Block],
    goal: Goal,
    policy: Policy,
    *,
    breaks_s: Sequence[float] = (),
    early: bool = False,
    steady: bool = True,
) -> Verification:
    """Judge a change by the blocks before it and after it settled.

    Args:
        before: blocks that ended before the change, oldest first.
        after: blocks that began after it had settled.
        goal: what must improve, and where.
        policy: SLO, windows, margins and the total error over all looks.
        breaks_s: times of earlier changes inside `before`; each side of one has a level of its own.
        steady: whether the level before the change would have lasted; if not, exceeding it is no proof of harm.
        early: only ask whether it is so harmful that it must be undone before the first regular look.
    """
    plan = policy.verification
    old, new = joined(before, plan.block_s), joined(after, plan.block_s)
    window_s = sum(block.length_s for block in new)
    if not new or len(old) < BLOCKS_BEFORE_MIN:
        reason = f"{len(old)} blocks before and {len(new)} after the change could be measured"
        return Verification(Measured.UNMEASURED, reason, window_s=window_s)
    comparison = _compare(old, new, goal, policy, breaks_s, early)
    if len(comparison.after) * 2 < len(new) or (not early and len(comparison.after) < BLOCKS_AFTER_MIN):
        reason = f"only {len(comparison.after)} of {len(new)} blocks had a load that was seen before the change"
        return Verification(Measured.INCONCLUSIVE, reason, method=comparison.method, window_s=window_s)
    alpha = EARLY_ALPHA if early else 2 * plan.alpha_ratio / len(plan.looks_s)
    names = (*goal.metrics, "e2e_per_token_s") if early else (*goal.metrics, *LATENCY_GUARDS, *WORK_GUARDS)
    found = _found(comparison, names, alpha)
    measured, reason = _verdict(found, goal, policy, comparison, early, steady)
    if goal.shifted and not early and measured is Measured.INCONCLUSIVE:
        shift = _shifted(comparison, policy, alpha, breaks_s, steady)
        if shift is not None:
            return Verification(Measured.IMPROVED, shift[0], found_numbers(found) | shift[1], "controls", window_s)
    return Verification(measured, reason, found_numbers(found), comparison.method, window_s)


def found_numbers(found: Mapping[str, "_Found"]) -> dict[str, Mapping[str, float]]:
    """The measured figures as a verification lists them."""
    return {name: item.numbers() for name, item in found.items()}


def _shifted(
    comparison: Comparison, policy: Policy, alpha: float, breaks_s: Sequence[float], steady: bool
) -> tuple[str, dict[str, Mapping[str, float]]] | None:
    """The gain from a shift of traffic between replicas, in words and numbers; None when there is none."""
    writes = tuple(b for b in comparison.breaks_s if b in breaks_s)
    for name in SHIFT_METRICS:
        metric = METRICS[name]
        past = replace(comparison, breaks_s=writes)
        change = shift_effect(past, comparison.goal.shifted, metric, alpha, steady=steady)
        now = comparison.level(metric, comparison.after)
        if change is not None and now is not None and change.high < 0:
            item = _Found(metric, change, now / exp(change.point), now)
            reason = f"{item.words}, by the excess over untouched replicas in the same minutes"
            return reason, {f"{name}_by_shift": item.numbers()}
    return None


def _compare(
    old: tuple[Block, ...], new: tuple[Block, ...], goal: Goal, policy: Policy, breaks_s: Sequence[float], early: bool
) -> Comparison:
    controls = untouched(old, new, goal)
    seen = new if controls else comparable(old, new, goal.target, policy.verification.extrapolation_ratio)
    usable = tuple(b for b in sorted(breaks_s) if sum(block.start_s >= b for block in old) >= 2)
    comparison = Comparison(old, seen, goal, policy.slo, usable, controls)
    for name in () if early else goal.metrics:
        onset = onset_s(comparison, METRICS[name])
        if onset is not None:
            return replace(comparison, breaks_s=(*(b for b in usable if b < onset), onset))
    return comparison


def _found(comparison: Comparison, names: Sequence[str], alpha: float) -> dict[str, _Found]:
    found: dict[str, _Found] = {}
    for name in dict.fromkeys(names):
        metric = METRICS[name]
        change = comparison.change(metric, alpha)
        was, now = (comparison.level(metric, side) for side in (comparison.last_regime, comparison.after))
        if change is not None and was is not None and now is not None:
            found[name] = _Found(metric, change, was, now)
    return found


def _verdict(
    found: Mapping[str, _Found], goal: Goal, policy: Policy, comparison: Comparison, early: bool, steady: bool
) -> tuple[Measured, str]:
    """Less work is worse whatever came before; later answers only where waits were not growing already."""
    if early:
        measured, reason = _early(found, comparison, policy.verification)
    elif less := _less_work(found, goal, policy.verification):
        return Measured.WORSE, less
    else:
        measured, reason = _judged(found, goal, policy, comparison, steady)
    if measured is Measured.WORSE and not steady:
        return Measured.INCONCLUSIVE, f"waits were growing before the change already: {reason}"
    return measured, reason


def _early(found: Mapping[str, _Found], comparison: Comparison, plan: VerificationPlan) -> tuple[Measured, str]:
    """Great harm, against all that was measured before and against the last minutes: trouble that began there stays."""
    for name in (*comparison.goal.metrics, "e2e_per_token_s"):
        item = found.get(name)
        if item is None:
            continue
        limit = log1p(plan.early_harm_ratio) if item.metric.logarithmic else 0.2
        last = comparison.level(item.metric, comparison.before[-1:])
        if item.worse(limit) and (last is None or item.harm_since(last) >= limit):
            return Measured.WORSE, f"{item.words}: far worse already"
    return Measured.INCONCLUSIVE, "no sign of great harm yet"


def _less_work(found: Mapping[str, _Found], goal: Goal, plan: VerificationPlan) -> str | None:
    """How less work is done than before, in words; None when it is not. A goal that sheds says so beforehand."""
    for name in WORK_GUARDS:
        item = found.get(name)
        margin = plan.error_margin_ratio if name == "error_share" else plan.goodput_margin_ratio
        declared = goal.sheds and name == "served_share"
        # Work is counted, not modelled: what the load would explain must also be seen in the plain figures.
        if item is not None and item.worse(margin) and item.harm_since(item.before) >= margin and not declared:
            return f"{item.words}: less work is done"
    return None


def _judged(
    found: Mapping[str, _Found], goal: Goal, policy: Policy, comparison: Comparison, steady: bool
) -> tuple[Measured, str]:
    goals = [found[name] for name in goal.metrics if name in found]
    if not goals:
        return Measured.UNMEASURED, f"none of {', '.join(goal.metrics)} was measured on both sides"
    gains = [item for item in goals if item.better]
    harms = [item for item in _harms(found, goal, policy) if _counts(item, bool(gains), found, policy, comparison)]
    if harms and (steady or not gains):
        return Measured.WORSE, "; ".join(item.words for item in harms)
    if gains:
        return Measured.IMPROVED, "; ".join(item.words for item in gains)
    return Measured.INCONCLUSIVE, "no clear effect: " + "; ".join(item.words for item in goals)


def _harms(found: Mapping[str, _Found], goal: Goal, policy: Policy) -> list[_Found]:
    plan = policy.verification
    names = dict.fromkeys((*goal.metrics, *LATENCY_GUARDS))
    return [
        found[name]
        for name in names
        if name in found
        and found[name].worse(log1p(plan.harm_margin_ratio) if METRICS[name].logarithmic else plan.goodput_margin_ratio)
    ]


def _counts(item: _Found, gained: bool, found: Mapping[str, _Found], policy: Policy, comparison: Comparison) -> bool:
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


def _points(change: Interval) -> str:
    return f"{change.point:+.3f}, {change.low:+.3f} to {change.high:+.3f}"
