"""The readings of one replica as one observer saw them, in time order, and the facts they support."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from statistics import median

from stack.histogram import TOLERANCE, increase, merged
from stack.measure import COUNTED, Increase, Numbers, signals_of
from stack.reading import Counter, Distribution, Gauge, Histogram, Reading
from stack.snapshot import Fact, Signal

GAUGES: dict[Gauge, Signal] = {
    Gauge.RUNNING: Signal.RUNNING,
    Gauge.WAITING: Signal.WAITING,
    Gauge.KV_USAGE_RATIO: Signal.KV_USAGE_RATIO,
    Gauge.GATEWAY_QUEUE: Signal.GATEWAY_QUEUE,
    Gauge.GATEWAY_SESSIONS: Signal.GATEWAY_SESSIONS,
    Gauge.GATEWAY_WEIGHT: Signal.ROUTING_WEIGHT,
    Gauge.UP: Signal.UP,
    Gauge.DEVICE_FREE_BYTES: Signal.DEVICE_FREE_BYTES,
    Gauge.DEVICE_TOTAL_BYTES: Signal.DEVICE_TOTAL_BYTES,
    Gauge.FRAGMENTATION_RATIO: Signal.FRAGMENTATION_RATIO,
    Gauge.LOGGED_PREFIX_HIT_RATIO: Signal.PREFIX_HIT_RATIO,
}
LOGGED_RATES: dict[Gauge, Counter] = {
    Gauge.PROMPT_TOKENS_PER_S: Counter.PROMPT_TOKENS,
    Gauge.GENERATION_TOKENS_PER_S: Counter.GENERATION_TOKENS,
}
ENDED = (Counter.FINISHED, Counter.ABORTED, Counter.ERRORS)


@dataclass(frozen=True)
class Spans:
    """What was counted over the whole window and over its halves; the halves are None with fewer than three scrapes.

    Attributes:
        first_share: the first part's share of the window, as scrapes rarely split it in exactly two.
    """

    whole: Increase
    first: Increase | None = None
    second: Increase | None = None
    first_share: float = 0.5


class Track:
    """Readings of one replica in one view.

    Attributes:
        readings: in time order, at least one.
        window_s: time between the first and the last; None when unknown.
    """

    def __init__(self, readings: Sequence[Reading], window_s: float | None, end_s: float | None) -> None:
        self.readings = readings
        self.window_s = window_s
        self._end_s = end_s

    @cached_property
    def resets(self) -> tuple[int, ...]:
        """Positions of readings that begin anew: a counter went down, or the process start changed."""
        return tuple(
            place for place, (before, after) in enumerate(pairwise(self.readings), start=1) if began_anew(before, after)
        )

    @cached_property
    def spans(self) -> Spans:
        """Increases over the window and over its halves."""
        last = len(self.readings) - 1
        middle = (last + 1) // 2
        whole = self._increase(0, last)
        if last < 2:
            return Spans(whole)
        return Spans(whole, self._increase(0, middle), self._increase(middle, last), middle / last)

    def gauge_facts(self) -> dict[Signal, Fact]:
        """A fact for each gauge that was read."""
        found = {}
        for gauge, signal in GAUGES.items():
            values = self.values(gauge)
            age_s = self.age_s(gauge)
            if values and (age_s is not None or holds(self.readings[-1], gauge)):
                found[signal] = gauge_fact(values, self.window_s, age_s)
        return found

    def values(self, gauge: Gauge) -> list[float]:
        """What was read of `gauge`, in time order; NaN was not read."""
        return [reading.gauges[gauge] for reading in self.readings if holds(reading, gauge)]

    def age_s(self, gauge: Gauge | None = None) -> float | None:
        """Age of the newest reading, or of the newest that holds `gauge`; None without times."""
        times = [reading.time_s for reading in self.readings if gauge is None or holds(reading, gauge)]
        if not times or times[-1] is None or self._end_s is None:
            return None
        return max(0.0, self._end_s - times[-1])

    def _increase(self, first: int, last: int) -> Increase:
        counters: dict[Counter, float] = {}
        histograms: dict[Distribution, list[Histogram]] = {}
        edges = [first, *(place for place in self.resets if first < place <= last), last + 1]
        for start, end in pairwise(edges):
            self._add_span(start, end - 1, counters, histograms)
        for gauge, counter in LOGGED_RATES.items():
            if counter not in counters:
                logged = self._integral(gauge, first, last)
                if logged is not None:
                    counters[counter] = logged
        self._add_arrived(first, last, counters)
        added = {name: merged(parts) or parts[-1] for name, parts in histograms.items()}
        return Increase(counters, added)

    def _add_span(
        self, start: int, end: int, counters: dict[Counter, float], histograms: dict[Distribution, list[Histogram]]
    ) -> None:
        """Add what was counted between two readings with no reset between them."""
        if start == end:
            return
        before, after = self.readings[start], self.readings[end]
        for counter, value in after.counters.items():
            added = value - before.counters.get(counter, math.nan)
            if not math.isnan(added):
                counters[counter] = counters.get(counter, 0.0) + added
        for name, histogram in after.histograms.items():
            earlier = before.histograms.get(name)
            grown = None if earlier is None else increase(earlier, histogram)
            if grown is not None:
                histograms.setdefault(name, []).append(grown)

    def _integral(self, gauge: Gauge, first: int, last: int) -> float | None:
        """Count behind a logged rate; each line states the average since the one before it.

        An idle engine prints nothing, so a gap far longer than usual counts as one usual interval.
        """
        spans = [
            (after.time_s - before.time_s, after.gauges[gauge])
            for before, after in pairwise(self.readings[first : last + 1])
            if gauge in after.gauges and before.time_s is not None and after.time_s is not None
        ]
        if not spans:
            return None
        usual_s = median(length_s for length_s, _ in spans)
        return sum((length_s if length_s < 2 * usual_s else usual_s) * rate for length_s, rate in spans)

    def _add_arrived(self, first: int, last: int, counters: dict[Counter, float]) -> None:
        """Without a gateway: what ended, plus how many more are inside now than at the start."""
        if Counter.ARRIVED in counters or Counter.FINISHED not in counters or self.resets:
            return
        start, end = self.readings[first].gauges, self.readings[last].gauges
        if Gauge.RUNNING in start and Gauge.RUNNING in end and Gauge.WAITING in start and Gauge.WAITING in end:
            inside = end[Gauge.RUNNING] + end[Gauge.WAITING] - start[Gauge.RUNNING] - start[Gauge.WAITING]
            ended = sum(counters.get(counter, 0.0) for counter in ENDED)
            counters[Counter.ARRIVED] = max(0.0, ended + inside)


def holds(reading: Reading, gauge: Gauge) -> bool:
    """Whether the reading has a number for `gauge`."""
    return not math.isnan(reading.gauges.get(gauge, math.nan))


def began_anew(before: Reading, after: Reading) -> bool:
    """Whether the process behind two consecutive readings was restarted, or its counters were reset, in between."""
    for key in ("started_s", "gateway_started_s"):
        if key in before.configuration and key in after.configuration:
            early, late = before.configuration[key], after.configuration[key]
            if isinstance(early, float) and isinstance(late, float) and abs(early - late) > 1.0:
                return True
    counters = after.counters
    return any(counters.get(counter, value) < value - TOLERANCE for counter, value in before.counters.items())


def gauge_fact(values: Sequence[float], window_s: float | None, age_s: float | None) -> Fact:
    """The last value, the first, the largest, and the slope between the means of the two halves.

    Half means rather than end points, so that one odd scrape does not make a trend.
    """
    half = len(values) // 2
    trend = None
    if half and window_s:
        distance_s = window_s * (len(values) - half) / (len(values) - 1)
        trend = (sum(values[-half:]) - sum(values[:half])) / half / distance_s * 60.0
    start = values[0] if half else None
    return Fact(values[-1], start, max(values), age_s, trend)


def counted_facts(spans: Spans, window_s: float | None, age_s: float | None) -> dict[Signal, Fact]:
    """Facts for what is counted, averaged or ranked over the window.

    The start of a count is what half a window would have counted at the first half's pace. The trend compares the
    halves, in the unit of the value per minute; counts are scaled to the whole window first.
    """
    whole = signals_of(spans.whole)
    first = _paced(spans.first, spans.first_share)
    second = _paced(spans.second, 1.0 - spans.first_share)
    found = {}
    for signal, value in whole.items():
        start, trend = first.get(signal), None
        if window_s and start is not None and signal in second:
            scale = 2.0 if signal in COUNTED else 1.0
            trend = scale * (second[signal] - start) / (window_s / 2) * 60.0
        found[signal] = Fact(value, start, None, age_s, trend)
    return found


def _paced(part: Increase | None, share: float) -> Numbers:
    """Signals of a part of the window, its counts scaled to half a window."""
    if part is None:
        return {}
    numbers = signals_of(part)
    if share != 0.5:
        for signal in COUNTED.keys() & numbers.keys():
            numbers[signal] *= 0.5 / share
    return numbers
