"""The fleet's facts from its replicas' tracks: sums of counts and gauges, means by weight, merged histograms."""

from collections.abc import Iterable, Sequence

from stack.measure import Increase, total_of
from stack.reading import GATEWAY, Counter, Gauge, View
from stack.snapshot import Fact, Signal
from stack.track import GAUGES, Spans, Track, counted_facts, gauge_fact, holds

SUMMED = (
    Gauge.RUNNING,
    Gauge.WAITING,
    Gauge.GATEWAY_QUEUE,
    Gauge.GATEWAY_SESSIONS,
    Gauge.UP,
    Gauge.DEVICE_FREE_BYTES,
    Gauge.DEVICE_TOTAL_BYTES,
)
AVERAGED = (Gauge.KV_USAGE_RATIO, Gauge.FRAGMENTATION_RATIO, Gauge.LOGGED_PREFIX_HIT_RATIO)
SEEN_BY_GATEWAY = (Counter.ARRIVED, Counter.ERRORS)
"""Counts of which the gateway knows more than the engines: what never reached one, and what failed on the way."""


def fleet_facts(tracks: Sequence[Track], window_s: float | None) -> dict[Signal, Fact]:
    """Facts over all replicas; gauges count with the newest value of each replica."""
    ages = [age for age in (track.age_s() for track in tracks) if age is not None]
    age_s = max(ages) if ages else None
    facts = counted_facts(fleet_spans(tracks), window_s, age_s)
    gauges = _gauge_facts(tracks, window_s, age_s)
    return {**gauges, **facts}


def fleet_spans(tracks: Sequence[Track]) -> Spans:
    """Increases of all replicas together. Halves only when every replica has them."""
    counted = [track for track in tracks if len(track.readings) > 1]
    engines = [track for track in counted if track.readings[0].view is View.ENGINE and not _is_gateway(track)]
    gateway = [track for track in counted if _is_gateway(track)] or [
        track for track in counted if track.readings[0].view is View.GATEWAY
    ]
    whole = _joined(
        [track.spans.whole for track in engines], [track.spans.whole for track in gateway], total=_has_total(gateway)
    )
    firsts = [track.spans.first for track in engines + gateway]
    if not counted or any(first is None for first in firsts):
        return Spans(whole)
    first, second = (
        _joined(
            [part for part in (_half(track, half) for track in engines) if part],
            [part for part in (_half(track, half) for track in gateway) if part],
            total=_has_total(gateway),
        )
        for half in ("first", "second")
    )
    return Spans(whole, first, second, counted[0].spans.first_share)


def _half(track: Track, half: str) -> Increase | None:
    return track.spans.first if half == "first" else track.spans.second


def _is_gateway(track: Track) -> bool:
    return track.readings[0].replica == GATEWAY


def _has_total(gateway: Sequence[Track]) -> bool:
    return any(_is_gateway(track) for track in gateway)


def _joined(engines: Iterable[Increase], gateway: Iterable[Increase], *, total: bool) -> Increase:
    """The engines' counts, with those that the gateway knows better taken from there.

    A gateway that measures times itself sees what clients see, its own queue included.
    """
    all_engines, at_gateway = total_of(tuple(engines)), total_of(tuple(gateway))
    seen = at_gateway.counters
    counters = dict(all_engines.counters)
    for counter in SEEN_BY_GATEWAY:
        if counter in seen:
            counters[counter] = seen[counter]
    if total and Counter.SHED in seen:
        counters[Counter.SHED] = counters.get(Counter.SHED, 0.0) + seen[Counter.SHED]
    histograms = {**all_engines.histograms, **at_gateway.histograms} if total else all_engines.histograms
    return Increase(counters, histograms)


def _gauge_facts(tracks: Sequence[Track], window_s: float | None, age_s: float | None) -> dict[Signal, Fact]:
    found = {}
    for gauge in (*SUMMED, *AVERAGED):
        series = _series(tracks, gauge)
        if not series:
            continue
        shortest = min(len(values) for _, values in series)
        total = sum(weight for weight, _ in series) if gauge in AVERAGED else 1.0
        columns = (
            sum(values[place - shortest] * (weight / total if gauge in AVERAGED else 1.0) for weight, values in series)
            for place in range(shortest)
        )
        found[GAUGES[gauge]] = gauge_fact(list(columns), window_s, age_s)
    return found


def _series(tracks: Sequence[Track], gauge: Gauge) -> list[tuple[float, list[float]]]:
    """(weight, values) per replica; the gateway's own figure stands for the sum of its servers' where it has one."""
    holders = [track for track in tracks if holds(track.readings[-1], gauge)]
    own = [track for track in holders if _is_gateway(track)]
    return [(_weight(track), track.values(gauge)) for track in own or holders]


def _weight(track: Track) -> float:
    """Share of the fleet's cache: its KV blocks where the engine tells them."""
    try:
        return max(1.0, float(track.readings[-1].configuration.get("num_gpu_blocks", 1.0)))
    except ValueError:
        return 1.0
