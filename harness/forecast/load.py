"""The load that the live metrics show, as far as a forecast needs it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stack.histogram import mean, merged
from stack.reading import Distribution, Histogram
from stack.snapshot import Signal, Snapshot

BURSTINESS_MAX = 8.0
"""Windows of a minute mix slow drift of the rate into their variance; more than this would be all drift."""


@dataclass(frozen=True)
class Lengths:
    """Token counts as a histogram saw them.

    Attributes:
        bounds: bucket borders, ascending from 0, one more than `shares`.
        shares: share of the requests in each bucket.
        mean_tokens: exact mean, which the buckets alone would miss.
    """

    bounds: tuple[float, ...]
    shares: tuple[float, ...]
    mean_tokens: float

    def draw(self, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """`n` lengths: uniform within a bucket, then scaled to the mean."""
        bounds = np.array(self.bounds)
        bucket = rng.choice(len(self.shares), n, p=np.array(self.shares))
        drawn = bounds[bucket] + rng.random(n) * (bounds[bucket + 1] - bounds[bucket])
        centres = (bounds[:-1] + bounds[1:]) / 2
        expected = float((np.array(self.shares) * centres).sum())
        lengths: NDArray[np.int64] = np.maximum(1, drawn * self.mean_tokens / max(expected, 1e-9)).astype(np.int64)
        return lengths


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
    prompt, output = (_lengths(snapshots, d) for d in (Distribution.PROMPT_TOKENS, Distribution.OUTPUT_TOKENS))
    if not rates or prompt is None or output is None or max(rates) <= 0:
        return None
    hits = [value for snapshot in snapshots if (value := snapshot.value(Signal.PREFIX_HIT_RATIO)) is not None]
    return Load(sum(rates) / len(rates), prompt, output, sum(hits) / len(hits) if hits else 0.0, _burstiness(snapshots))


def _burstiness(snapshots: Sequence[Snapshot]) -> float:
    counts = [count for snapshot in snapshots if (count := snapshot.value(Signal.ARRIVED)) is not None]
    if len(counts) < 3:
        return 1.0
    mean_count = sum(counts) / len(counts)
    variance = sum((count - mean_count) ** 2 for count in counts) / (len(counts) - 1)
    return min(BURSTINESS_MAX, max(1.0, variance / mean_count)) if mean_count > 0 else 1.0


def _lengths(snapshots: Sequence[Snapshot], distribution: Distribution) -> Lengths | None:
    seen = [snapshot.distributions[distribution] for snapshot in snapshots if distribution in snapshot.distributions]
    together = merged(seen)
    mean_tokens = None if together is None else mean(together)
    return None if together is None or not mean_tokens else _from_histogram(together, mean_tokens)


def _from_histogram(histogram: Histogram, mean_tokens: float) -> Lengths:
    """Shares per bucket; what lies above the largest finite bound is taken to lie within its double."""
    finite = [bound for bound in histogram.bounds if np.isfinite(bound)]
    bounds = (0.0, *finite, 2 * finite[-1])
    counts = np.diff((0.0, *histogram.cumulative))
    return Lengths(bounds, tuple(map(float, counts / counts.sum())), mean_tokens)
