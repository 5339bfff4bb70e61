"""Token counts as a histogram saw them, and draws from them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from stack.histogram import mean, merged
from stack.reading import Distribution, Histogram
from stack.snapshot import Snapshot

Floats = NDArray[np.float64]
Tokens = NDArray[np.int64]
NORMAL = NormalDist()
GRID = 2000
SHARES = (np.arange(GRID) + 0.5) / GRID
"""Where the smoothed distribution is known."""
SCORES = np.array([NORMAL.inv_cdf(float(share)) for share in SHARES])
JUMP = 1e-6
LAST_SCORE = 3.0
"""Normal score of a distribution's ends where its buckets do not tell them."""


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

    def draw(self, n: int, rng: np.random.Generator) -> Tokens:
        """`n` lengths."""
        return self._whole(np.interp(rng.random(n), SHARES, self._values))

    def draw_in_service(self, n: int, rng: np.random.Generator) -> Tokens:
        """`n` lengths of requests met in service: each length counts in proportion to the time it stays."""
        weights = self._values / self._values.sum()
        return self._whole(self._values[rng.choice(len(SHARES), n, p=weights)])

    def draw_above(self, tokens: float, n: int, rng: np.random.Generator) -> Tokens:
        """`n` lengths above `tokens`; up to twice that where none was seen so long."""
        above = self._values[self._values > tokens]
        if len(above) == 0:
            return self._whole(tokens * (1 + rng.random(n)))
        return self._whole(above[rng.integers(len(above), size=n)])

    @staticmethod
    def _whole(values: Floats) -> Tokens:
        lengths: Tokens = np.maximum(1, np.rint(values)).astype(np.int64)
        return lengths

    @cached_property
    def _values(self) -> Floats:
        """The lengths at `SHARES`.

        Between bucket borders the logarithm of the length is a straight line over the normal score of the share, as it
        is everywhere for log-normal lengths; the outer buckets go on along their neighbours' lines. Scaled to the mean.
        """
        borders = np.log(np.maximum(0.5, self.bounds))
        held = np.flatnonzero(self.shares)
        low, high = borders[held[0]], borders[held[-1] + 1]
        reached = [NORMAL.inv_cdf(float(share)) for share in np.cumsum(self.shares)[held[:-1]]]
        # Empty buckets between two that hold something are a jump: the same score at both of their borders.
        scores = np.repeat(reached, 2) + np.tile([0.0, JUMP], len(reached))
        places = np.column_stack([borders[held[:-1] + 1], borders[held[1:]]]).ravel()
        kept = np.concatenate([[True], np.diff(places) > 0]) if len(places) else np.zeros(0, dtype=bool)
        scores, places = scores[kept], places[kept]
        if len(places) < 2:
            end = LAST_SCORE + float(np.abs(scores).max(initial=0.0))
            scores, places = np.array([-end, *scores, end]), np.array([low, *places, high])
        values = np.interp(SCORES, scores, places)
        first, last = scores[0] > SCORES, scores[-1] < SCORES
        values[first] = places[0] + (SCORES[first] - scores[0]) * (places[1] - places[0]) / (scores[1] - scores[0])
        values[last] = places[-1] + (SCORES[last] - scores[-1]) * (places[-1] - places[-2]) / (scores[-1] - scores[-2])
        lengths: Floats = np.exp(np.clip(values, low, high))
        return lengths * self.mean_tokens / float(lengths.mean())


def lengths_of(snapshots: Sequence[Snapshot], distribution: Distribution) -> Lengths | None:
    """Lengths over all windows; None when none were seen."""
    seen = [snapshot.distributions[distribution] for snapshot in snapshots if distribution in snapshot.distributions]
    together = merged(seen)
    mean_tokens = None if together is None else mean(together)
    return None if together is None or not mean_tokens else _from_histogram(together, mean_tokens)


def _from_histogram(histogram: Histogram, mean_tokens: float) -> Lengths:
    """Shares per bucket; what lies above the largest finite bound is taken to lie within its double."""
    finite = [bound for bound in histogram.bounds if np.isfinite(bound)]
    bounds = (0.0, *finite, 2 * finite[-1])
    counts = np.maximum(0.0, np.diff((0.0, *histogram.cumulative)))
    return Lengths(bounds, tuple(map(float, counts / counts.sum())), mean_tokens)
