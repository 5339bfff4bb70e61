"""The lines of one histogram, put together."""

import math
from dataclasses import dataclass, field
from itertools import pairwise

from stack.errors import InputError
from stack.metric_line import MetricLine
from stack.reading import Histogram


@dataclass(frozen=True)
class Incomplete:
    """Why there is no histogram.

    Attributes:
        fatal: the lines contradict each other; not fatal is a part that is only absent.
    """

    text: str
    fatal: bool


@dataclass
class Buckets:
    """Bucket, count and sum lines of one histogram of one replica."""

    at_or_below: dict[float, MetricLine] = field(default_factory=dict)
    count: float | None = None
    total: float | None = None

    def add(self, part: str, line: MetricLine) -> None:
        """Take one line; `part` is bucket, count or sum.

        Raises:
            InputError: a bucket line has no readable bound.
        """
        if part == "count":
            self.count = (self.count or 0.0) + line.value
        elif part == "sum":
            self.total = (self.total or 0.0) + line.value
        else:
            self.at_or_below[_bound(line)] = line

    def histogram(self) -> tuple[Histogram | None, Incomplete | None]:
        """The histogram, or what keeps the lines from being one."""
        ordered = [self.at_or_below[bound] for bound in sorted(self.at_or_below)]
        for early, late in pairwise(ordered):
            if late.value < early.value:
                return None, Incomplete(
                    f"has a bucket below the one before it ({late.value:g} after {early.value:g}, {late.place})", True
                )
        bounds = sorted(self.at_or_below)
        counts = [line.value for line in ordered]
        if not bounds or not math.isinf(bounds[-1]):
            if self.count is None:
                return None, Incomplete("has neither a +Inf bucket nor a count", False)
            if counts and self.count < counts[-1]:
                return None, Incomplete(f"counts {self.count:g} in all but {counts[-1]:g} in its largest bucket", True)
            bounds.append(math.inf)
            counts.append(self.count)
        total = math.nan if self.total is None else self.total
        return Histogram(tuple(bounds), tuple(counts), total), None


def _bound(line: MetricLine) -> float:
    text = line.labels.get("le", "")
    try:
        bound = float(text)
    except ValueError:
        bound = math.nan
    if math.isnan(bound):
        raise InputError(f"{line.place}: {line.name} has the bound le={text!r}; expected a number or +Inf")
    return bound
