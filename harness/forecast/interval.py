"""From the figures of several draws to a prediction with its 80 % intervals."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from harness.action import Predicted
from harness.forecast.figures import Figures

COVERAGE = 0.8
SCORE = NormalDist().inv_cdf(0.5 + COVERAGE / 2)
MODEL_SPREAD: Mapping[str, float] = {
    "ttft_p99_s": 0.12,
    "e2e_p99_s": 0.06,
    "e2e_p50_s": 0.02,
    "itl_mean_s": 0.02,
    "finished_per_s": 0.02,
    "slo_share": 0.05,
    "kv_usage_p95_ratio": 0.1,
}
"""The model's own error beside what the draws differ by: standard deviation of the logarithm, of a share p that of p
over sqrt(p (1 - p)). Chosen so that 80 % intervals held four fifths of what came in the 160 cases of seeds 0 to 159 of
benchmarks/forecast_accuracy.py; the draws' spread itself needs no factor."""
OTHER_SPREAD = 0.05
SHARE_ROUNDING = 0.002
"""A share is not known better than this."""
NOTHING = 1e-9


@dataclass(frozen=True)
class Correction:
    """What past predictions say of one figure's.

    Attributes:
        shift: to be added to the predicted effect, a logarithm or a share.
        widening: factor on the intervals.
    """

    shift: float = 0.0
    widening: float = 1.0


def effects_of(pairs: Sequence[tuple[Figures, Figures]], corrections: Mapping[str, Correction]) -> dict[str, Predicted]:
    """The predicted quantities from (without, with) the change, one pair a draw."""
    names = set.intersection(*(set(figures) for pair in pairs for figures in pair))
    return {
        name: _predicted(name, [(a[name], c[name]) for a, c in pairs], corrections.get(name, Correction()))
        for name in sorted(names)
    }


def is_share(name: str) -> bool:
    """Whether a figure lies between 0 and 1, and effects on it are differences; those on others are ratios."""
    return name.endswith(("_share", "_ratio"))


def _predicted(name: str, values: Sequence[tuple[float, float]], correction: Correction) -> Predicted:
    share = is_share(name)
    before = np.array([_inner(b, share) for b, _ in values])
    after = np.array([_inner(a, share) for _, a in values])
    moves = after - before
    unmoved = bool(np.abs(moves).max() < NOTHING)
    shift = 0.0 if unmoved else correction.shift
    model = MODEL_SPREAD.get(name, OTHER_SPREAD)
    if share:
        middle = min(1.0, max(0.0, float(after.mean())))
        model = math.hypot(model * math.sqrt(middle * (1.0 - middle)), SHARE_ROUNDING)
    spread = SCORE * correction.widening * math.hypot(_spread(after), model)
    slack = SCORE * correction.widening * _spread(moves)
    point, move = float(after.mean()) + shift, float(moves.mean()) + shift
    at = float(before.mean())
    ends = [_outer(x, share) for x in (at, point, point - spread, point + spread, at + move - slack, at + move + slack)]
    return Predicted(ends[0], ends[1], ends[2], ends[3], ends[4] - ends[0], ends[5] - ends[0])


def _spread(values: np.ndarray) -> float:
    return float(values.std(ddof=1)) if len(values) > 1 else 0.0


def _inner(value: float, share: bool) -> float:
    return value if share else math.log(max(value, NOTHING))


def _outer(value: float, share: bool) -> float:
    return min(1.0, max(0.0, value)) if share else math.exp(value)
