"""What was found about one metric: its change of level with bounds, in numbers and in words."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from harness.verification.comparison import Comparison
from harness.verification.metric import METRICS, Metric
from harness.verification.statistics import Interval

SHARE_FLOOR = 0.01
"""A share below this is reported as if it were this, so that its ratio stays readable."""


@dataclass(frozen=True)
class Found:
    """One metric's change.

    Attributes:
        change: of the level, by the comparison's method.
        before, after: plain means, for people.
    """

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
        """Whether nothing in its bounds is harm."""
        return self.harm.high < 0

    def worse(self, margin: float) -> bool:
        """Whether everything in its bounds is harm, and the harm as large as `margin`, as people count it."""
        without = self.after - self._moves[0]
        return self.harm.low > 0 and self.harm_since(without) >= margin

    def harm_since(self, level: float) -> float:
        """The plain change from `level`, as a ratio or in points; worse is more."""
        floor = self.metric.floor
        rise = max(self.after, floor) / max(level, floor) - 1 if self.metric.scale.relative else self.after - level
        return rise if self.metric.lower_is_better else -rise

    @property
    def words(self) -> str:
        """In one clause."""
        if self.metric.scale.relative:
            ratio, low, high = self._ratios
            return f"{self.metric.name} {ratio - 1:+.0%} at equal load ({low - 1:+.0%} to {high - 1:+.0%})"
        points = "{:+.3f}, {:+.3f} to {:+.3f}".format(*self._moves)
        return f"{self.metric.name} {self.before:.3f} to {self.after:.3f} (change {points})"

    def numbers(self) -> Mapping[str, float]:
        """As a verification lists them."""
        if self.metric.scale.relative:
            ratio, low, high = self._ratios
        else:
            base = max(self.before, SHARE_FLOOR)
            ratio, low, high = ((base + move) / base for move in self._moves)
        return {"before": self.before, "after": self.after, "ratio": ratio, "low": low, "high": high}

    @property
    def _ratios(self) -> tuple[float, float, float]:
        """What the change multiplied the figure by: best guess and bounds."""
        back, c = self.metric.scale.back, self.change
        return back(c.point), back(c.low), back(c.high)

    @property
    def _moves(self) -> tuple[float, float, float]:
        """What the change added to the figure: best guess and bounds, in the figure's own unit."""
        metric, bounds = self.metric, (self.change.point, self.change.low, self.change.high)
        place, now = metric.scaled(self.after), max(self.after, metric.floor)
        point, low, high = (now - metric.scale.back(place - bound) for bound in bounds)
        return point, low, high


def found_in(comparison: Comparison, names: Iterable[str], alpha: float) -> dict[str, Found]:
    """What was found about each metric that was measured on both sides."""
    found: dict[str, Found] = {}
    for name in dict.fromkeys(names):
        metric = METRICS[name]
        change = comparison.change(metric, alpha)
        was, now = (comparison.level(metric, side) for side in (comparison.last_regime, comparison.after))
        if change is not None and was is not None and now is not None:
            found[name] = Found(metric, change, was, now)
    return found


def numbers_of(found: Mapping[str, Found], prefix: str = "") -> dict[str, Mapping[str, float]]:
    """The measured figures as a verification lists them."""
    return {f"{prefix}{name}": item.numbers() for name, item in found.items()}
