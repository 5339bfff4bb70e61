"""The verdict on a change: better, worse, or nobody can say. Pure; looks at blocks, never at the stack."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp

from harness.outcome import Measured, Verification
from harness.policy import Policy
from harness.verification.block import Block, joined
from harness.verification.comparison import Comparison, comparable, onset_s, requests_of
from harness.verification.controls import controls_of
from harness.verification.found import Found, found_in, numbers_of
from harness.verification.goal import Goal
from harness.verification.judgement import GOODPUT, judged, less_work, work_guards
from harness.verification.metric import METRICS
from harness.verification.shift import shift_effect
from harness.verification.sight import lost_sight
from stack.snapshot import FLEET, Signal

BLOCKS_BEFORE_MIN = 3
BLOCKS_AFTER_MIN = 3
FINISHED_MIN = 50.0
"""Requests finished after the change below which means and quantiles say nothing."""
EARLY_ALPHA = 0.002
GUARDRAILS = 4
"""First tokens, token times, errors, goodput: the total error is split over them as it is over the looks."""
LATENCY_GUARDS = ("ttft_mean_s", "itl_mean_s", "itl_p99_s", "e2e_per_token_s")
TAILS = ("ttft_p99_s", "ttft_p95_s")
"""The late first tokens: the first of these that was measured in most blocks is a guard too."""
TAIL_KNOWN_RATIO = 0.8
SHIFT_METRICS = ("e2e_per_token_s", "itl_mean_s")


@dataclass(frozen=True)
class _Look:
    """What is the same for every metric at one look.

    Attributes:
        blocks: how many there are after the change, whatever load they had.
        alpha: two-sided error of each interval.
    """

    goal: Goal
    policy: Policy
    blocks: int
    window_s: float
    alpha: float
    early: bool
    steady: bool

    def enough(self, comparison: Comparison) -> bool:
        """Whether most blocks after the change had a load that can be compared, and there are enough of them."""
        count = len(comparison.after)
        return 2 * count >= self.blocks and (self.early or count >= BLOCKS_AFTER_MIN)

    def verification(
        self,
        measured: Measured,
        reason: str,
        method: str = "",
        metrics: Mapping[str, Mapping[str, float]] | None = None,
    ) -> Verification:
        """The verdict as it is told."""
        return Verification(measured, reason, metrics or {}, method, self.window_s)


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

    Whatever the goal, no verdict is better than the goodput, the errors, the first tokens (mean and P99, or P95 where
    there are too few for a P99), the token times and the whole answers allow; and the fleet must not do less work.

    Args:
        before: blocks that ended before the change, oldest first.
        after: blocks that began after it had settled.
        goal: what must improve, and where.
        policy: SLO, windows, margins and the total error over all looks.
        breaks_s: times of earlier changes inside `before`; each side of one has a level of its own.
        early: only ask whether it is so harmful that it must be undone before the first regular look.
        steady: whether the level before the change would have lasted; if not, exceeding it is no proof of harm.
    """
    plan = policy.verification
    old, new = joined(before, plan.block_s), joined(after, plan.block_s)
    alpha = EARLY_ALPHA if early else 2 * plan.alpha_ratio / (len(plan.looks_s) * GUARDRAILS)
    look = _Look(goal, policy, len(new), sum(block.length_s for block in new), alpha, early, steady)
    if not new or len(old) < BLOCKS_BEFORE_MIN:
        return look.verification(
            Measured.UNMEASURED, f"{len(old)} blocks before and {len(new)} after the change could be measured"
        )
    comparison = _compare(old, new, look, breaks_s)
    less, work = _work(old, new, comparison, look)
    found = less or _answer(comparison, look, breaks_s)
    lost = lost_sight(old, new, goal.target) if found.measured is Measured.IMPROVED else None
    if lost:
        found = replace(found, measured=Measured.INCONCLUSIVE, reason=f"{lost}: {found.reason}")
    return replace(found, metrics={**found.metrics, **work})


def _work(
    old: tuple[Block, ...], new: tuple[Block, ...], comparison: Comparison, look: _Look
) -> tuple[Verification | None, dict[str, Mapping[str, float]]]:
    """The verdict on a change since which the fleet, or the changed replica, does less work, if so; and the figures.

    Wherever the change was made the fleet is looked at: one replica can be fast because others do its work, or nobody.
    Only the requests that come in must be as many as before; what they would have been like, if none is answered,
    nobody knows.
    """
    goal, plan = look.goal, look.policy.verification
    after = comparable(old, new, FLEET, plan.extrapolation_ratio, (requests_of,))
    fleet = replace(comparison, after=after, goal=replace(goal, target=FLEET), controls=())
    numbers: dict[str, Mapping[str, float]] = {}
    for one in (fleet, comparison) if goal.target != FLEET else (fleet,):
        found = found_in(one, work_guards(goal), look.alpha) if look.enough(one) else {}
        numbers |= numbers_of(found, "" if one.goal.target == goal.target else "fleet_")
        less = less_work(found, one, plan, early=look.early)
        if less:
            return look.verification(Measured.WORSE, f"{one.goal.target}: {less}", one.method), numbers
    return None, numbers


def _answer(comparison: Comparison, look: _Look, breaks_s: Sequence[float]) -> Verification:
    """The verdict by the goal's metrics and the guards."""
    few = _too_few(comparison, look)
    if few:
        return look.verification(Measured.INCONCLUSIVE, few, comparison.method)
    found = found_in(comparison, _names(comparison, look), look.alpha)
    measured, reason = judged(found, look.goal, look.policy, comparison, early=look.early, steady=look.steady)
    if look.goal.shifted and not look.early and measured is Measured.INCONCLUSIVE:
        shift = _shifted(comparison, look, breaks_s)
        if shift is not None:
            return look.verification(Measured.IMPROVED, shift[0], "controls", numbers_of(found) | shift[1])
    return look.verification(measured, reason, comparison.method, numbers_of(found))


def _too_few(comparison: Comparison, look: _Look) -> str | None:
    """Why there is too little to judge by, in words."""
    if not look.enough(comparison):
        return f"only {len(comparison.after)} of {look.blocks} blocks had a load that was seen before the change"
    finished = sum(block.of(look.goal.target).get(Signal.FINISHED, 0.0) for block in comparison.after)
    if not look.early and finished < FINISHED_MIN:
        return f"only {finished:g} requests finished since the change, at least {FINISHED_MIN:g} are needed"
    return None


def _names(comparison: Comparison, look: _Look) -> tuple[str, ...]:
    if look.early:
        return (*look.goal.metrics, "e2e_per_token_s")
    known = [name for name in TAILS if comparison.known_ratio(METRICS[name]) >= TAIL_KNOWN_RATIO]
    return (*look.goal.metrics, GOODPUT, *LATENCY_GUARDS, *known[:1])


def _shifted(
    comparison: Comparison, look: _Look, breaks_s: Sequence[float]
) -> tuple[str, dict[str, Mapping[str, float]]] | None:
    """The gain from a shift of traffic between replicas, in words and numbers; None when there is none."""
    writes = tuple(b for b in comparison.breaks_s if b in breaks_s)
    for name in SHIFT_METRICS:
        metric = METRICS[name]
        past = replace(comparison, breaks_s=writes)
        change = shift_effect(past, comparison.goal.shifted, metric, look.alpha, steady=look.steady)
        now = comparison.level(metric, comparison.after)
        if change is not None and now is not None and change.high < 0:
            item = Found(metric, change, now / exp(change.point), now)
            reason = f"{item.words}, by the excess over untouched replicas in the same minutes"
            return reason, {f"{name}_by_shift": item.numbers()}
    return None


def _compare(old: tuple[Block, ...], new: tuple[Block, ...], look: _Look, breaks_s: Sequence[float]) -> Comparison:
    goal, policy = look.goal, look.policy
    controls = controls_of(old, new, goal)
    seen = new if controls else comparable(old, new, goal.target, policy.verification.extrapolation_ratio)
    usable = tuple(b for b in sorted(breaks_s) if sum(block.start_s >= b for block in old) >= 2)
    comparison = Comparison(old, seen, goal, policy.slo, usable, controls)
    for name in () if look.early else goal.metrics:
        onset = onset_s(comparison, METRICS[name])
        if onset is not None:
            return replace(comparison, breaks_s=(*(b for b in usable if b < onset), onset))
    return comparison
