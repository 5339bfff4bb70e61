"""Readings of one window to a snapshot."""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

from stack.absence import absent_everywhere, absent_signals
from stack.fleet import fleet_facts, fleet_spans
from stack.measure import COUNTED, Increase, averages_of
from stack.reading import GATEWAY, Gauge, Reading, View
from stack.setting import Value
from stack.snapshot import Fact, Facts, Oddity, Signal, Snapshot
from stack.track import Track, counted_facts

Settings = Mapping[str, Mapping[str, Value]]
CLOCK_SKEW_S = 2.0
"""How far two machines' clocks may be apart unnoticed."""
SAMPLE_SIZES = (Signal.FINISHED, Signal.DRAFTED_TOKENS, Signal.PREFIX_QUERIED_TOKENS)
"""Totals kept from a single scrape: they say how much stands behind its ratios and means."""


def snapshot_of(
    readings: Sequence[Reading],
    *,
    window_s: float | None,
    now_s: float | None = None,
    settings: Settings | None = None,
) -> Snapshot:
    """The facts that `readings` support.

    With two or more readings of a replica its counters become increases and its histograms quantiles of the window.
    With one reading of every replica nothing is known about load: ratios and means since process start go to
    `lifetime`, and all else is missing.

    Args:
        readings: of any replicas, each replica's in time order.
        window_s: readings older than this before the end are left out. Where readings carry no time, the length of
            the window that they span. None: all readings, the length from their times.
        now_s: end of the window, from which ages count; None for the newest reading's time.
        settings: values in force per setting and target; weights and limits that the gateway tells are added.
    """
    times = [reading.time_s for reading in readings if reading.time_s is not None]
    end_s = now_s if now_s is not None else max(times, default=None)
    tracks, warnings, oddities = _tracks(readings, window_s, end_s)
    longest = max((len(track.readings) for held in tracks.values() for track in held), default=0)
    common = _Common(end_s, settings or {}, tracks, warnings, oddities)
    return common.single_scrape() if longest < 2 else common.windowed()


class _Common:
    """What both kinds of snapshot are made of."""

    def __init__(
        self,
        end_s: float | None,
        settings: Settings,
        tracks: Mapping[str, list[Track]],
        warnings: list[str],
        oddities: Mapping[str, Oddity],
    ) -> None:
        self._end_s = end_s
        self._tracks = tracks
        self._engines = {name: held for name, held in tracks.items() if name != GATEWAY}
        self._warnings = warnings
        self._oddities = oddities
        self._configuration = {name: _configuration(held) for name, held in tracks.items()}
        self._settings = _with_gateway_settings(settings, self._engines)
        self._prefixes = {name: found for name, held in self._engines.items() if (found := _prefixes(held[0].readings))}

    def windowed(self) -> Snapshot:
        """The snapshot of two or more scrapes."""
        all_tracks = [track for held in self._tracks.values() for track in held]
        lengths = [track.window_s for track in all_tracks if track.window_s is not None]
        window_s = max(lengths, default=None)
        replicas = {name: _replica_facts(held) for name, held in self._engines.items()}
        fleet, whole = fleet_facts(all_tracks, window_s), fleet_spans(all_tracks).whole
        for name, held in self._tracks.items():
            self._warnings += [
                f"{name}: counters began anew within the window (a restart?); what was counted across it is left out"
                for track in held
                if track.resets
            ]
        return Snapshot(
            time_s=self._end_s,
            window_s=window_s,
            scrapes=min(len(track.readings) for track in all_tracks if len(track.readings) > 1),
            replicas=replicas,
            fleet=fleet,
            distributions=whole.histograms,
            configuration=self._configuration,
            settings=self._settings,
            missing=absent_signals(replicas, fleet, self._tracks, whole),
            warnings=tuple(dict.fromkeys(self._warnings)),
            prefixes=self._prefixes,
            oddities=self._oddities,
        )

    def single_scrape(self) -> Snapshot:
        """The snapshot of one scrape: configuration claims only."""
        return Snapshot(
            time_s=self._end_s,
            window_s=0.0 if self._tracks else None,
            scrapes=1 if self._tracks else 0,
            replicas={name: {} for name in self._engines},
            fleet={},
            lifetime={name: _lifetime_facts(held) for name, held in self._engines.items()},
            configuration=self._configuration,
            settings=self._settings,
            missing=absent_everywhere(self._tracks),
            warnings=tuple(dict.fromkeys(self._warnings)),
        )


def _tracks(
    readings: Sequence[Reading], window_s: float | None, end_s: float | None
) -> tuple[dict[str, list[Track]], list[str], dict[str, Oddity]]:
    """Tracks per replica, the engine's before the gateway's, and what was odd: in words, and for rules."""
    grouped: dict[tuple[str, View], list[Reading]] = {}
    for reading in readings:
        if window_s is None or end_s is None or reading.time_s is None or reading.time_s >= end_s - window_s - 1e-6:
            grouped.setdefault((reading.replica, reading.view), []).append(reading)
    tracks: dict[str, list[Track]] = {}
    warnings: list[str] = []
    oddities: dict[str, Oddity] = {}
    for (replica, _view), held in sorted(grouped.items(), key=lambda item: item[0][1] is View.GATEWAY):
        ordered = _in_order(held, replica, warnings)
        warnings += [warning for reading in ordered for warning in reading.warnings]
        warnings += _not_numbers(ordered[-1])
        span_s = _span_s(ordered)
        length_s = span_s if span_s is not None else (window_s if len(ordered) > 1 and end_s is None else None)
        track = Track(ordered, length_s, end_s)
        tracks.setdefault(replica, []).append(track)
        oddity = _oddity(track, ordered is not held, end_s)
        if oddity is not None and oddities.get(replica) in (None, Oddity.RESTARTED):
            oddities[replica] = oddity
    return tracks, warnings, oddities


def _oddity(track: Track, disordered: bool, end_s: float | None) -> Oddity | None:
    """What is wrong with a track. One process begins anew once in a window; two under one name do so by turns."""
    newest_s = track.readings[-1].time_s
    if newest_s is not None and end_s is not None and newest_s > end_s + CLOCK_SKEW_S:
        return Oddity.AHEAD
    if disordered or len(track.resets) > 1:
        return Oddity.DUPLICATED
    return Oddity.RESTARTED if track.resets else None


def _in_order(readings: list[Reading], replica: str, warnings: list[str]) -> list[Reading]:
    """Sorted by time, each moment once; a warning says when they were not."""
    for before, after in pairwise(readings):
        if before.time_s is not None and after.time_s is not None and after.time_s <= before.time_s:
            warnings.append(f"{replica}: scrapes arrived out of order or twice for one moment; they were put in order")
            unique = {reading.time_s: reading for reading in readings if reading.time_s is not None}
            return [unique[time_s] for time_s in sorted(unique)]
    return readings


def _not_numbers(reading: Reading) -> list[str]:
    """A warning for each value of the newest reading that is NaN."""
    values = (*reading.gauges.items(), *reading.counters.items())
    return [f"{reading.replica}: {name} is NaN and was left out" for name, value in values if math.isnan(value)]


def _span_s(readings: Sequence[Reading]) -> float | None:
    first, last = readings[0].time_s, readings[-1].time_s
    return None if first is None or last is None or len(readings) < 2 else last - first


def _replica_facts(tracks: Sequence[Track]) -> Facts:
    """Facts of one replica; what the gateway says of it wins, as it sees the failures on the way too."""
    facts: dict[Signal, Fact] = {}
    for track in tracks:
        facts |= track.gauge_facts()
        if len(track.readings) > 1:
            facts |= counted_facts(track.spans, track.window_s, track.age_s())
    return facts


def _lifetime_facts(tracks: Sequence[Track]) -> Facts:
    found: dict[Signal, Fact] = {}
    for track in tracks:
        reading = track.readings[-1]
        totals = averages_of(Increase(reading.counters, reading.histograms))
        for signal in SAMPLE_SIZES:
            if COUNTED[signal] in reading.counters:
                totals[signal] = reading.counters[COUNTED[signal]]
        found |= {signal: Fact(value, age_s=track.age_s()) for signal, value in totals.items()}
    return found


def _configuration(tracks: Sequence[Track]) -> Mapping[str, Value]:
    merged: dict[str, Value] = {}
    for track in tracks:
        merged |= track.readings[-1].configuration
    return merged


def _prefixes(readings: Sequence[Reading]) -> tuple[tuple[str, int, int], ...]:
    """Hits within the window per prefix, most first."""
    before = {prefix: hits for prefix, _, hits in readings[0].prefixes} if len(readings) > 1 else {}
    counted = [(prefix, tokens, hits - before.get(prefix, 0)) for prefix, tokens, hits in readings[-1].prefixes]
    return tuple(sorted((one for one in counted if one[2] > 0), key=lambda one: (-one[2], one[0])))


def _with_gateway_settings(settings: Settings, tracks: Mapping[str, Sequence[Track]]) -> Settings:
    """`settings`, completed by the weights and limits that the gateway tells."""
    told: dict[str, dict[str, Value]] = {name: dict(values) for name, values in settings.items()}
    for replica, held in tracks.items():
        for track in held:
            gauges = track.readings[-1].gauges
            if Gauge.GATEWAY_WEIGHT in gauges:
                told.setdefault("routing_weight", {}).setdefault(replica, gauges[Gauge.GATEWAY_WEIGHT])
            limit = gauges.get(Gauge.GATEWAY_LIMIT, 0.0)
            if limit > 0 and math.isfinite(limit):
                told.setdefault("replica_concurrency_cap", {}).setdefault(replica, limit)
    return told
