"""Which signals a snapshot lacks, why, and what cannot be diagnosed for want of them."""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

from stack.measure import MIN_OBSERVATIONS, QUANTILES, Increase
from stack.reading import Counter, Distribution, Gauge, Reading
from stack.signal_costs import (
    BEYOND_BUCKETS,
    GROUPS,
    NO_OBSERVATION,
    NOT_EXPORTED,
    SINGLE_SCRAPE,
    TOO_FEW,
    SignalGroup,
)
from stack.signal_costs import QUANTILES as NAMED_QUANTILES
from stack.snapshot import FLEET, Facts, Missing, Signal
from stack.track import GAUGES, Track

_Source: TypeAlias = Counter | Distribution | Gauge
_COUNTED: dict[Signal, _Source] = {
    Signal.PREEMPTIONS: Counter.PREEMPTIONS,
    Signal.PREFIX_HIT_RATIO: Counter.PREFIX_QUERIED_TOKENS,
    Signal.FINISHED: Counter.FINISHED,
    Signal.GENERATION_TOKENS: Counter.GENERATION_TOKENS,
    Signal.TTFT_P95_S: Distribution.TTFT_S,
    Signal.ITL_P95_S: Distribution.ITL_S,
    Signal.E2E_P99_S: Distribution.E2E_S,
    Signal.QUEUE_P95_S: Distribution.QUEUE_S,
    Signal.STEP_TOKENS_MEAN: Distribution.STEP_TOKENS,
}
_GAUGES: dict[Signal, _Source] = {signal: gauge for gauge, signal in GAUGES.items()}
_SOURCES: Mapping[Signal, _Source] = MappingProxyType(_GAUGES | _COUNTED)


def absent_everywhere(tracks: Mapping[str, Sequence[Track]]) -> tuple[Missing, ...]:
    """Every group, for a single scrape."""
    held = [track for one in tracks.values() for track in one]
    reasons = {NO_OBSERVATION: SINGLE_SCRAPE}
    return tuple(
        Missing(group.name, FLEET, reasons.get(reason, reason), group.costs)
        for group in GROUPS
        if (reason := _reason(group, held))
    )


def absent_signals(
    replicas: Mapping[str, Facts], fleet: Facts, tracks: Mapping[str, Sequence[Track]], whole: Increase
) -> tuple[Missing, ...]:
    """What is missing: for the fleet where no replica has it, otherwise per replica; then quantiles of the fleet."""
    found: list[Missing] = []
    for group in GROUPS:
        if not any(signal in fleet or any(signal in facts for facts in replicas.values()) for signal in group.signals):
            reason = _reason(group, [track for held in tracks.values() for track in held])
            found.append(Missing(group.name, FLEET, reason, group.costs))
        elif not group.gateway:
            found += _absent_at(group, replicas, tracks)
    return (*found, *_absent_quantiles(fleet, whole))


def unexported(readings: Iterable[Reading], *, gateway: bool) -> tuple[SignalGroup, ...]:
    """Groups of the gateway's signals, or of an engine's, for which none of `readings` has a source."""
    held = tuple(readings)
    return tuple(group for group in GROUPS if group.gateway == gateway and not _has_source(group, held))


def _absent_at(
    group: SignalGroup, replicas: Mapping[str, Facts], tracks: Mapping[str, Sequence[Track]]
) -> list[Missing]:
    return [
        Missing(group.name, replica, _reason(group, tracks[replica]), group.costs)
        for replica, facts in replicas.items()
        if not any(signal in facts for signal in group.signals)
    ]


def _reason(group: SignalGroup, tracks: Sequence[Track]) -> str:
    newest = (reading for track in tracks for reading in track.readings[-1:])
    return NO_OBSERVATION if _has_source(group, newest) else NOT_EXPORTED


def _has_source(group: SignalGroup, readings: Iterable[Reading]) -> bool:
    source = _SOURCES.get(Signal(group.name))
    return any(source in one.counters or source in one.histograms or source in one.gauges for one in readings)


def _absent_quantiles(fleet: Facts, whole: Increase) -> list[Missing]:
    """Quantiles of the fleet that a histogram with observations could not give."""
    found = []
    for signal, costs in NAMED_QUANTILES:
        distribution, share = QUANTILES[signal]
        histogram = whole.histograms.get(distribution)
        if signal in fleet or histogram is None or histogram.count <= 0:
            continue
        if histogram.count >= MIN_OBSERVATIONS[share]:
            reason = f"{BEYOND_BUCKETS} ({histogram.bounds[-2]:g})" if len(histogram.bounds) > 1 else NOT_EXPORTED
        else:
            reason = f"{TOO_FEW} ({histogram.count:g} of {MIN_OBSERVATIONS[share]})"
        found.append(Missing(signal, FLEET, reason, costs))
    return found
