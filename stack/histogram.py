"""Arithmetic on cumulative histograms: what was added between two of them, their merger, mean and quantiles."""

import math
from bisect import bisect_left
from collections.abc import Iterable
from itertools import pairwise

from stack.reading import Histogram

TOLERANCE = 1e-9
"""Counts are whole numbers in floating point; a smaller decrease than this is rounding, not a reset."""


def increase(before: Histogram, after: Histogram) -> Histogram | None:
    """The observations made between two scrapes, or None when they cannot be known.

    They cannot be known when the buckets differ or a count went down (the process restarted in between).
    """
    if before.bounds != after.bounds:
        return None
    cumulative = tuple(late - early for early, late in zip(before.cumulative, after.cumulative, strict=True))
    if any(count < -TOLERANCE for count in cumulative) or not is_cumulative(cumulative):
        return None
    return Histogram(after.bounds, cumulative, after.total - before.total)


def merged(histograms: Iterable[Histogram]) -> Histogram | None:
    """All observations of several histograms with the same buckets; None when there are none or the buckets differ."""
    parts = tuple(histograms)
    if len(parts) == 1:
        return parts[0]
    if not parts or any(part.bounds != parts[0].bounds for part in parts):
        return None
    counts = tuple(map(sum, zip(*(part.cumulative for part in parts), strict=True)))
    return Histogram(parts[0].bounds, counts, sum(part.total for part in parts))


def is_cumulative(counts: tuple[float, ...]) -> bool:
    """Whether no count is below the one before it."""
    return all(late >= early - TOLERANCE for early, late in pairwise(counts))


def mean(histogram: Histogram) -> float | None:
    """Mean of the observations; None without any, or when their sum is unknown."""
    if histogram.count <= 0 or math.isnan(histogram.total):
        return None
    return max(0.0, histogram.total) / histogram.count


def quantile(histogram: Histogram, share: float) -> float | None:
    """The value below which `share` of the observations lie, by linear interpolation inside its bucket.

    The same rule as Prometheus' `histogram_quantile`, except that a quantile above the largest finite bound is
    unknown and so None, not that bound. None also without observations.
    """
    if histogram.count <= 0:
        return None
    rank = share * histogram.count
    place = bisect_left(histogram.cumulative, rank)
    while place < len(histogram.bounds) and histogram.cumulative[place] <= 0:
        place += 1
    if place >= len(histogram.bounds) or math.isinf(histogram.bounds[place]):
        return None
    high = histogram.bounds[place]
    low = histogram.bounds[place - 1] if place else min(0.0, high)
    below = histogram.cumulative[place - 1] if place else 0.0
    within = histogram.cumulative[place] - below
    return high if within <= 0 else low + (high - low) * (rank - below) / within
