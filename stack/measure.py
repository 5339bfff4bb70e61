"""From increases to signals: the same arithmetic for a window, half of one, a lifetime, a replica and the fleet."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from stack.histogram import mean, merged, quantile
from stack.reading import Counter, Distribution, Histogram
from stack.snapshot import Signal

Numbers = dict[Signal, float]


@dataclass(frozen=True)
class Increase:
    """What was counted between two scrapes (or since process start)."""

    counters: Mapping[Counter, float] = field(default_factory=dict)
    histograms: Mapping[Distribution, Histogram] = field(default_factory=dict)


COUNTED: Mapping[Signal, Counter] = MappingProxyType(
    {
        Signal.ARRIVED: Counter.ARRIVED,
        Signal.FINISHED: Counter.FINISHED,
        Signal.ABORTED: Counter.ABORTED,
        Signal.SHED: Counter.SHED,
        Signal.ERRORS: Counter.ERRORS,
        Signal.PROMPT_TOKENS: Counter.PROMPT_TOKENS,
        Signal.GENERATION_TOKENS: Counter.GENERATION_TOKENS,
        Signal.PREEMPTIONS: Counter.PREEMPTIONS,
        Signal.PREFIX_QUERIED_TOKENS: Counter.PREFIX_QUERIED_TOKENS,
        Signal.DRAFTED_TOKENS: Counter.DRAFTED_TOKENS,
    }
)

RATIOS: Mapping[Signal, tuple[Counter, Counter]] = MappingProxyType(
    {
        Signal.PREFIX_HIT_RATIO: (Counter.PREFIX_HIT_TOKENS, Counter.PREFIX_QUERIED_TOKENS),
        Signal.DRAFT_ACCEPT_RATIO: (Counter.ACCEPTED_TOKENS, Counter.DRAFTED_TOKENS),
    }
)

MEANS: Mapping[Signal, Distribution] = MappingProxyType(
    {
        Signal.TTFT_MEAN_S: Distribution.TTFT_S,
        Signal.ITL_MEAN_S: Distribution.ITL_S,
        Signal.E2E_MEAN_S: Distribution.E2E_S,
        Signal.QUEUE_MEAN_S: Distribution.QUEUE_S,
        Signal.PREFILL_MEAN_S: Distribution.PREFILL_S,
        Signal.PROMPT_TOKENS_MEAN: Distribution.PROMPT_TOKENS,
        Signal.OUTPUT_TOKENS_MEAN: Distribution.OUTPUT_TOKENS,
        Signal.STEP_TOKENS_MEAN: Distribution.STEP_TOKENS,
    }
)

QUANTILES: Mapping[Signal, tuple[Distribution, float]] = MappingProxyType(
    {
        Signal.TTFT_P50_S: (Distribution.TTFT_S, 0.50),
        Signal.TTFT_P95_S: (Distribution.TTFT_S, 0.95),
        Signal.TTFT_P99_S: (Distribution.TTFT_S, 0.99),
        Signal.ITL_P50_S: (Distribution.ITL_S, 0.50),
        Signal.ITL_P95_S: (Distribution.ITL_S, 0.95),
        Signal.ITL_P99_S: (Distribution.ITL_S, 0.99),
        Signal.E2E_P50_S: (Distribution.E2E_S, 0.50),
        Signal.E2E_P95_S: (Distribution.E2E_S, 0.95),
        Signal.E2E_P99_S: (Distribution.E2E_S, 0.99),
        Signal.QUEUE_P95_S: (Distribution.QUEUE_S, 0.95),
        Signal.PROMPT_TOKENS_P95: (Distribution.PROMPT_TOKENS, 0.95),
        Signal.OUTPUT_TOKENS_P95: (Distribution.OUTPUT_TOKENS, 0.95),
    }
)

MIN_OBSERVATIONS: Mapping[float, int] = MappingProxyType({0.50: 4, 0.95: 20, 0.99: 100})
"""Observations below which a quantile would only restate the largest one: 1 / (1 - share), and four for a median."""


def signals_of(increase: Increase) -> Numbers:
    """Every signal that `increase` supports. A ratio, mean or quantile of nothing is absent, not zero."""
    counters = increase.counters
    found = {signal: counters[counter] for signal, counter in COUNTED.items() if counter in counters}
    found |= averages_of(increase)
    for signal, (distribution, share) in QUANTILES.items():
        histogram = increase.histograms.get(distribution)
        if histogram is not None and histogram.count >= MIN_OBSERVATIONS[share]:
            value = quantile(histogram, share)
            if value is not None:
                found[signal] = value
    return found


def averages_of(increase: Increase) -> Numbers:
    """Ratios and means only: what a single scrape's totals since process start can tell."""
    counters, found = increase.counters, {}
    for signal, (part, whole) in RATIOS.items():
        if part in counters and counters.get(whole, 0.0) > 0:
            found[signal] = min(1.0, counters[part] / counters[whole])
    for signal, distribution in MEANS.items():
        histogram = increase.histograms.get(distribution)
        value = None if histogram is None else mean(histogram)
        if value is not None:
            found[signal] = value
    return found


def total_of(increases: tuple[Increase, ...]) -> Increase:
    """Counts added up and histograms merged; histograms with different buckets cannot be merged and are left out."""
    counters: dict[Counter, float] = {}
    parts: dict[Distribution, list[Histogram]] = {}
    for increase in increases:
        for counter, value in increase.counters.items():
            counters[counter] = counters.get(counter, 0.0) + value
        for distribution, histogram in increase.histograms.items():
            parts.setdefault(distribution, []).append(histogram)
    together = {distribution: merged(found) for distribution, found in parts.items()}
    return Increase(counters, {name: found for name, found in together.items() if found is not None})
