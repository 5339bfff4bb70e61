"""What a shift of traffic away from, or towards, a replica did to the whole fleet.

The fleet's figure is the untouched replicas' figure times the excess the shifted replica adds to it. The excess is
measured within each minute, so that bursts and drifts, which hit all replicas, cancel. What the untouched ones pay
for the load they took over is measured against their own past at equal load of the fleet; their past is the whole
time before, as the trouble of the shifted replica was not theirs. The two log changes add up, and so do their
variances. (A difference in differences with the spill-over on the controls counted rather than assumed away.)
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import log, sqrt
from typing import TypeAlias

from harness.objective import Slo
from harness.verification.block import Block
from harness.verification.comparison import Comparison, onset_s
from harness.verification.metric import Metric
from harness.verification.statistics import Interval
from stack.snapshot import Signal

Figure: TypeAlias = Callable[[Block, Sequence[str], Metric, Slo], float | None]
"""A logarithm computed from a block for some shifted replicas."""


def shift_effect(
    comparison: Comparison, shifted: Sequence[str], metric: Metric, alpha: float, *, steady: bool = True
) -> Interval | None:
    """Log change of the fleet's figure by a shift of traffic of `shifted`; None when it cannot be told.

    Args:
        comparison: fleet blocks before and after; its breaks are earlier writes only.
        shifted: replicas whose share was changed.
        metric: compared as a ratio.
        alpha: two-sided error.
        steady: whether the excess before the change was a level. If waits were still growing, its last block is the
            least of what would have gone on.
    """
    excess = _derived(comparison, shifted, metric, _excess)
    # Within a minute the noise is a few per cent, so that one block can show an excess.
    onset = onset_s(excess, metric, adjusted=False, least=1)
    if onset is not None:
        excess = replace(excess, breaks_s=(*(b for b in excess.breaks_s if b < onset), onset))
    if not steady:
        last_s = comparison.before[-1].start_s
        excess = replace(excess, breaks_s=(*(b for b in excess.breaks_s if b < last_s), last_s))
    gained = excess.change(metric, alpha, adjusted=False)
    paid = _derived(comparison, shifted, metric, _untouched).change(metric, alpha)
    if gained is None or paid is None:
        return None
    point = gained.point + paid.point
    width = sqrt((gained.high - gained.point) ** 2 + (paid.high - paid.point) ** 2)
    return Interval(point, point - width, point + width)


def _derived(comparison: Comparison, shifted: Sequence[str], metric: Metric, figure: Figure) -> Comparison:
    """The comparison with the fleet's value of `metric` replaced by a figure of each block."""
    blocks = (*comparison.before, *comparison.after)
    return replace(comparison, figures={b.end_s: figure(b, shifted, metric, comparison.slo) for b in blocks})


def _excess(block: Block, shifted: Sequence[str], metric: Metric, slo: Slo) -> float | None:
    fleet, rest = metric.of(block.fleet, slo), _rest(block, shifted, metric, slo)
    return log(fleet / rest) if fleet and rest else None


def _untouched(block: Block, shifted: Sequence[str], metric: Metric, slo: Slo) -> float | None:
    rest = _rest(block, shifted, metric, slo)
    return log(max(rest, metric.floor)) if rest else None


def _rest(block: Block, shifted: Sequence[str], metric: Metric, slo: Slo) -> float | None:
    """The figure of all untouched replicas together, weighted by finished requests."""
    parts = [values for name, values in block.replicas.items() if name not in shifted]
    known = [(v.get(Signal.FINISHED, 0.0), value) for v in parts if (value := metric.of(v, slo)) is not None]
    total = sum(weight for weight, _ in known)
    return sum(weight * value for weight, value in known) / total if total > 0 else None
