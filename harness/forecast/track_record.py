"""How right past predictions were: it shifts and widens later ones, and says when to doubt them."""

import math
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from harness.action import Action
from harness.forecast.interval import SCORE, Correction, is_share
from harness.outcome import Verification

RECORD = 40
"""Predictions, over all figures, that still count."""
RIGHT_SIGN_MIN_RATIO = 0.6
JUDGED_MIN = 3
PRIOR = 4.0
"""A bias must be seen in more than so many records before half of it is believed."""
WIDENING_MAX = 4.0
TINY = 1e-6


@dataclass(frozen=True)
class Record:
    """A prediction beside what was measured: ratios of after to before, below 1 for an improvement of latency.

    Attributes:
        before: the predicted quantity without the change.
        low, high: the 80 % interval as a ratio to it.
    """

    metric: str
    predicted_ratio: float
    measured_ratio: float
    before: float = 1.0
    low: float | None = None
    high: float | None = None

    @property
    def same_sign(self) -> bool:
        """Whether both say better or both say worse."""
        return (self.predicted_ratio - 1.0) * (self.measured_ratio - 1.0) >= 0

    @property
    def miss(self) -> float:
        """How far the measured effect was above the predicted one: of a share the difference, else the logarithm."""
        return self._scaled(self.measured_ratio) - self._scaled(self.predicted_ratio)

    @property
    def half_width(self) -> float:
        """Half of the interval on the same scale; 0 when it was not kept."""
        if self.low is None or self.high is None:
            return 0.0
        return (self._scaled(self.high) - self._scaled(self.low)) / 2

    def _scaled(self, ratio: float) -> float:
        return ratio * self.before if is_share(self.metric) else math.log(max(ratio, TINY))


class TrackRecord:
    """The latest predictions beside what was measured."""

    def __init__(self) -> None:
        self._records: deque[Record] = deque(maxlen=RECORD)

    def add(self, action: Action, verification: Verification | None) -> None:
        """Store predicted against measured, wherever both exist."""
        if action.forecast is None or verification is None:
            return
        for metric, predicted in action.forecast.effects.items():
            ratio = verification.metrics.get(metric, {}).get("ratio")
            if ratio is not None and ratio > 0 and predicted.before > 0:
                told = (value / predicted.before for value in (predicted.after, predicted.low, predicted.high))
                after, low, high = told
                self._records.append(Record(metric, after, ratio, predicted.before, low, high))

    @property
    def records(self) -> tuple[Record, ...]:
        """Oldest first."""
        return tuple(self._records)

    def corrections(self) -> dict[str, Correction]:
        """By figure, from its own records."""
        return {name: self._correction([r for r in self._records if r.metric == name]) for name in self._names()}

    def doubt(self) -> str:
        """Why forecasts are not to be relied on at present; empty when they are."""
        right = sum(record.same_sign for record in self._records)
        if len(self._records) >= JUDGED_MIN and right < RIGHT_SIGN_MIN_RATIO * len(self._records):
            return f"only {right} of the last {len(self._records)} predictions had the right sign"
        return ""

    def _names(self) -> Iterable[str]:
        return dict.fromkeys(record.metric for record in self._records)

    def _correction(self, records: list[Record]) -> Correction:
        """Mean miss, shrunk towards none; and how far the rest was outside the intervals, shrunk towards not at all."""
        n = len(records)
        shift = sum(record.miss for record in records) / (n + PRIOR)
        scores = [(record.miss - shift) / record.half_width * SCORE for record in records if record.half_width > 0]
        variance = (PRIOR + sum(score**2 for score in scores)) / (PRIOR + len(scores))
        widening = min(WIDENING_MAX, max(1.0, math.sqrt(variance)))
        return Correction(shift, widening)
