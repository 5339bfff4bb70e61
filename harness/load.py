"""The load that the live metrics show, as far as a forecast needs it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from stack.snapshot import Signal, Snapshot

Z95 = 1.645
"""95th percentile of the standard normal distribution."""
SIGMA_BOUNDS = (0.05, 1.5)
"""Spread of log lengths that a forecast will assume: constant lengths to very long tails."""


@dataclass(frozen=True)
class Lengths:
    """Log-normal token counts, fitted to a mean and a 95th percentile."""

    mean_tokens: float
    sigma: float

    @property
    def mu(self) -> float:
        """Mean of the logarithm."""
        return math.log(max(1.0, self.mean_tokens)) - self.sigma**2 / 2


@dataclass(frozen=True)
class Load:
    """What arrives.

    Attributes:
        arrivals_per_s: over the fleet.
        burstiness: variance of arrivals per window over their mean; 1 for Poisson arrivals.
        hit_ratio: share of prompt tokens found in the prefix cache.
    """

    arrivals_per_s: float
    prompt: Lengths
    output: Lengths
    hit_ratio: float
    burstiness: float = 1.0


def load_of(snapshots: Sequence[Snapshot]) -> Load | None:
    """Load over the last few snapshots, which do not overlap; None when arrivals or lengths are unknown."""
    rates = [rate for snapshot in snapshots if (rate := snapshot.per_s(Signal.ARRIVED)) is not None]
    prompt = _lengths(snapshots, Signal.PROMPT_TOKENS_MEAN, Signal.PROMPT_TOKENS_P95)
    output = _lengths(snapshots, Signal.OUTPUT_TOKENS_MEAN, Signal.OUTPUT_TOKENS_P95)
    if not rates or prompt is None or output is None or max(rates) <= 0:
        return None
    hits = [value for snapshot in snapshots if (value := snapshot.value(Signal.PREFIX_HIT_RATIO)) is not None]
    return Load(sum(rates) / len(rates), prompt, output, sum(hits) / len(hits) if hits else 0.0, _burstiness(snapshots))


def _burstiness(snapshots: Sequence[Snapshot]) -> float:
    counts = [count for snapshot in snapshots if (count := snapshot.value(Signal.ARRIVED)) is not None]
    if len(counts) < 3:
        return 1.0
    mean = sum(counts) / len(counts)
    variance = sum((count - mean) ** 2 for count in counts) / (len(counts) - 1)
    return max(1.0, variance / mean) if mean > 0 else 1.0


def _lengths(snapshots: Sequence[Snapshot], mean: Signal, p95: Signal) -> Lengths | None:
    means = [value for snapshot in snapshots if (value := snapshot.value(mean)) is not None]
    if not means:
        return None
    tails = [value for snapshot in snapshots if (value := snapshot.value(p95)) is not None]
    mean_tokens = sum(means) / len(means)
    return Lengths(mean_tokens, _sigma(mean_tokens, sum(tails) / len(tails)) if tails else 1.0)


def _sigma(mean: float, p95: float) -> float:
    """Spread of the log-normal with that mean and 95th percentile: p95/mean = exp(z s - s^2/2), smaller root."""
    low, high = SIGMA_BOUNDS
    if mean <= 0 or p95 <= mean:
        return low
    inside = Z95**2 - 2 * math.log(p95 / mean)
    return min(high, max(low, Z95 - math.sqrt(inside))) if inside > 0 else high
