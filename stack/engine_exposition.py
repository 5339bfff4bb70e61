"""vLLM's part of a scrape: one reading per replica, told apart by instance, model and engine labels."""

import math
from collections import defaultdict
from dataclasses import dataclass, field

from stack import metric_names as names
from stack.bucket import Buckets
from stack.errors import InputError
from stack.metric_line import MetricLine, problem_with
from stack.reading import Counter, Distribution, Gauge, Histogram, Reading
from stack.replica_labels import Labels, identity_of, matches, replica_name
from stack.setting import Value


@dataclass
class _Raw:
    """What was found for one set of identity labels, still under wire names."""

    values: dict[str, float] = field(default_factory=dict)
    finished: dict[Counter, float] = field(default_factory=dict)
    buckets: dict[str, Buckets] = field(default_factory=lambda: defaultdict(Buckets))
    configuration: dict[str, Value] = field(default_factory=dict)
    created_s: list[float] = field(default_factory=list)


_HISTOGRAMS = frozenset(name for group in names.ENGINE_HISTOGRAMS.values() for name in group)
_RATIO_NAMES = frozenset(name for gauge in names.RATIOS for name in names.ENGINE_GAUGES.get(gauge, ()))
_GAUGE_NAMES = frozenset(name for group in names.ENGINE_GAUGES.values() for name in group) | {names.SWAPPED}
_COUNTER_NAMES = frozenset(name for group in names.ENGINE_COUNTERS.values() for name in group)
_PROBE_NAMES = {f"{names.PROBE_PREFIX}{name}" for name in names.PROBE_GAUGES.values()}


class EngineScrape:
    """Collects the vLLM lines of one scrape and turns them into readings."""

    def __init__(self, source: str, *, strict: bool) -> None:
        self._source = source
        self._strict = strict
        self._raw: dict[Labels, _Raw] = defaultdict(_Raw)
        self._warnings: list[str] = []

    def add(self, line: MetricLine) -> None:
        """Take one line.

        Raises:
            InputError: the value is impossible and the scrape is read strictly.
        """
        bare = _bare(line.name)
        if bare is None:
            return
        raw = self._raw[identity_of(line.labels)]
        if bare == names.CONFIGURATION:
            raw.configuration.update(_configuration(line.labels))
        elif bare.endswith("_created"):
            raw.created_s += [line.value] if math.isfinite(line.value) else []
        elif self._is_sound(line, bare):
            _store(raw, bare, line)

    def readings(self, time_s: float | None, replica: str | None) -> list[Reading]:
        """One reading per replica; series that name fewer labels are added to every replica they match."""
        shared = {labels: raw for labels, raw in self._raw.items() if not (raw.values or raw.finished or raw.buckets)}
        own = {labels: raw for labels, raw in self._raw.items() if labels not in shared}
        own, loose = _placed(own)
        for labels, raw in loose.items():
            self._warnings.append(f"{self._source}: {_words(labels, raw)} matches several replicas and was left out")
        told = {labels: replica_name(labels, own, replica) for labels in own}
        return [self._reading(told[labels], labels, own[labels], shared, time_s) for labels in sorted(own)]

    def _is_sound(self, line: MetricLine, bare: str) -> bool:
        problem = problem_with(line.value)
        if problem is None and bare in _RATIO_NAMES and line.value > 1:
            problem = "is above 1, the largest possible share"
        if problem is None or not _is_read(bare):
            return problem is None
        if self._strict:
            raise InputError(f"{line.place}: {line.name} {problem} ({line.value:g}); expected a number of at least 0")
        self._warnings.append(f"{line.place}: {line.name} {problem} ({line.value:g}) and was left out")
        return False

    def _reading(
        self, name: str, labels: Labels, raw: _Raw, shared: dict[Labels, _Raw], time_s: float | None
    ) -> Reading:
        warnings = list(self._warnings)
        histograms = self._histograms(raw, name, warnings)
        configuration: dict[str, Value] = {"model_name": labels[1]} if labels[1] else {}
        starts = list(raw.created_s)
        for other, facts in shared.items():
            if matches(other, labels):
                configuration |= facts.configuration
                starts += facts.created_s
        configuration |= raw.configuration
        if starts:
            configuration["started_s"] = min(starts)
        return Reading(
            replica=name,
            time_s=time_s,
            gauges=_gauges(raw.values),
            counters=_counters(raw.values) | raw.finished,
            histograms=histograms,
            configuration=configuration,
            origin=self._source,
            warnings=tuple(warnings),
        )

    def _histograms(self, raw: _Raw, name: str, warnings: list[str]) -> dict[Distribution, Histogram]:
        found = {}
        for distribution, wire_names in names.ENGINE_HISTOGRAMS.items():
            wire = next((wire for wire in wire_names if wire in raw.buckets), None)
            if wire is None:
                continue
            histogram, problem = raw.buckets[wire].histogram()
            if histogram is not None:
                found[distribution] = histogram
            elif self._strict and problem and problem.fatal:
                raise InputError(f"{self._source}: {wire} of {name} {problem.text}")
            elif problem:
                warnings.append(f"{self._source}: {wire} of {name} {problem.text}; it was left out")
        return found


def _bare(name: str) -> str | None:
    if name == names.PROCESS_START:
        return f"{name}_created"
    return name if name in _PROBE_NAMES else names.without_prefix(name)


def _configuration(labels: dict[str, str]) -> dict[str, Value]:
    skip = {"engine", "model_name", "instance", "pod"}
    return {name: value for name, value in labels.items() if name not in skip and value != "None"}


def _is_read(bare: str) -> bool:
    return (
        bare in _GAUGE_NAMES
        or bare in _COUNTER_NAMES
        or bare in _PROBE_NAMES
        or bare == names.FINISHED_REQUESTS
        or _histogram_part(bare) is not None
    )


def _histogram_part(bare: str) -> tuple[str, str] | None:
    base, _, part = bare.rpartition("_")
    return (base, part) if part in {"bucket", "sum", "count"} and base in _HISTOGRAMS else None


def _store(raw: _Raw, bare: str, line: MetricLine) -> None:
    histogram = _histogram_part(bare)
    if histogram is not None:
        raw.buckets[histogram[0]].add(histogram[1], line)
    elif bare == names.FINISHED_REQUESTS:
        kind = names.UNSUCCESSFUL.get(line.labels.get(names.FINISHED_REASON, ""), Counter.FINISHED)
        raw.finished[kind] = raw.finished.get(kind, 0.0) + line.value
    elif bare in _GAUGE_NAMES or bare in _COUNTER_NAMES or bare in _PROBE_NAMES:
        raw.values[bare] = raw.values.get(bare, 0.0) + line.value


def _placed(own: dict[Labels, _Raw]) -> tuple[dict[Labels, _Raw], dict[Labels, _Raw]]:
    """Give series without an engine label to the one replica they belong to; those that fit several are loose."""
    loose: dict[Labels, _Raw] = {}
    for labels in sorted(own, key=lambda parts: sum(map(bool, parts))):
        fuller = [other for other in own if other != labels and matches(labels, other)]
        if len(fuller) == 1:
            own[fuller[0]].values |= own.pop(labels).values
        elif fuller:
            loose[labels] = own.pop(labels)
    return own, loose


def _words(labels: Labels, raw: _Raw) -> str:
    series = ", ".join(sorted([*raw.values, *raw.buckets])) or names.FINISHED_REQUESTS
    return f"{series} of {'/'.join(part for part in labels if part) or 'no model'}"


def _gauges(values: dict[str, float]) -> dict[Gauge, float]:
    found = {}
    for gauge, wire_names in names.ENGINE_GAUGES.items():
        wire = next((wire for wire in wire_names if wire in values), None)
        if wire is not None:
            found[gauge] = values[wire]
    if Gauge.WAITING in found:
        found[Gauge.WAITING] += values.get(names.SWAPPED, 0.0)
    for gauge, name in names.PROBE_GAUGES.items():
        if names.PROBE_PREFIX + name in values:
            found[gauge] = values[names.PROBE_PREFIX + name]
    return found


def _counters(values: dict[str, float]) -> dict[Counter, float]:
    found = {}
    for counter, wire_names in names.ENGINE_COUNTERS.items():
        wire = next((wire for wire in wire_names if wire in values), None)
        if wire is not None:
            found[counter] = values[wire]
    return found
