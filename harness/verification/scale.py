"""Scales on which figures are compared: there load and noise add up, and the noise is everywhere the same. Pure.

Latencies are compared as ratios. The share of requests inside a limit is compared by the normal quantile: where
latencies are spread like a log-normal, a slowdown moves it by as much at 99 % as at 60 %, and a share near 1, which
hardly varies, does not lend its small variance to a lower one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, log
from statistics import NormalDist

SHARE_MIN, SHARE_MAX = 0.005, 0.995
"""Shares beyond these are taken as these: one request more or less of a few hundred."""


@dataclass(frozen=True)
class Scale:
    """One scale.

    Attributes:
        to, back: from a figure to its place on the scale, and from there.
        onset_min: smallest step that can be the onset of a trouble.
        relative: whether people count a change as a ratio; otherwise in points.
        robust: whether single bad blocks count less.
    """

    to: Callable[[float], float]
    back: Callable[[float], float]
    onset_min: float
    relative: bool = False
    robust: bool = False


def _quantile(share: float) -> float:
    return NormalDist().inv_cdf(min(SHARE_MAX, max(SHARE_MIN, share)))


RATIO = Scale(log, exp, onset_min=log(1.1), relative=True, robust=True)
INSIDE = Scale(_quantile, NormalDist().cdf, onset_min=0.3)
DIFFERENCE = Scale(float, float, onset_min=0.05)
