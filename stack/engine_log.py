"""vLLM's log as a source: the periodic status lines of v0 and v1, preemption warnings and out-of-memory errors.

The lines carry month, day and time but no year. Times are placed in one fixed year and run on into the next when the
month goes back, so differences are right and the date is not; whoever shows a date must not take it from here.
"""

import math
from datetime import datetime, timedelta

from stack.errors import InputError
from stack.log_line import (
    RATES,
    REQUIRED,
    Status,
    cumulative_preemptions,
    drafted,
    is_out_of_memory,
    stamp_of,
    status_of,
)
from stack.metric_line import shortened
from stack.reading import Counter, Gauge, Reading

HALF_A_YEAR = timedelta(days=180)
MAX_WARNINGS = 20


def looks_like_log(text: str) -> bool:
    """Whether the text holds at least one periodic status line."""
    return any(status_of(line) is not None for line in text.splitlines())


def readings_in_log(text: str, source: str, *, replica: str | None = None) -> list[Reading]:
    """One reading per status line and engine, in the order of the lines.

    Args:
        text: the log; lines of any other kind are passed over.
        source: file name, for messages.
        replica: name of the engine; several engines in one log get their index appended.

    Raises:
        InputError: no status line, a status line without time or with a part missing or impossible, or times that
            go back.
    """
    reader = _LogReader(source)
    for number, line in enumerate(text.splitlines(), start=1):
        reader.take(line, number)
    if not reader.entries:
        raise InputError(f"{source}: no vLLM status line (`Avg prompt throughput: ... Running: ... reqs`) in the log")
    return reader.readings(replica)


class _LogReader:
    """Walks over the lines and keeps what lasts from one to the next."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._stamp: datetime | None = None
        self._years = 0
        self._preemptions: float | None = None
        self._accepted = self._drafted = 0
        self._speculates = False
        self._warnings: list[str] = []
        self.entries: list[tuple[str, float, dict[Gauge, float], dict[Counter, float]]] = []

    def take(self, line: str, number: int) -> None:
        """Read one line."""
        place = f"{self._source}, line {number}"
        preempted, drafts, status = cumulative_preemptions(line), drafted(line), status_of(line)
        if is_out_of_memory(line) and len(self._warnings) < MAX_WARNINGS:
            self._warnings.append(f"{place}: out of memory: {shortened(line.strip())}")
        if preempted is not None:
            self._note_preemptions(preempted)
        if drafts is not None:
            self._speculates = True
            self._accepted += drafts[0]
            self._drafted += drafts[1]
        if status is not None:
            gauges = _gauges_of(status, place, line)
            self.entries.append((status.engine, self._time_s(line, place), gauges, self._counters()))

    def readings(self, replica: str | None) -> list[Reading]:
        """All status lines as readings; warnings go with the last one."""
        engines = {engine for engine, *_ in self.entries}
        if len(engines) > 1:
            self._warnings += ["preemption and speculation lines name no engine and were left out"] * self._is_shared()
        last = len(self.entries) - 1
        return [
            Reading(
                replica=_name(replica, engine, len(engines) > 1),
                time_s=time_s,
                gauges=gauges,
                counters=counters if len(engines) == 1 else {},
                origin=self._source,
                warnings=tuple(self._warnings) if place == last else (),
            )
            for place, (engine, time_s, gauges, counters) in enumerate(self.entries)
        ]

    def _is_shared(self) -> bool:
        return self._preemptions is not None or self._speculates

    def _note_preemptions(self, total: int) -> None:
        """The first warning also says what stood before it: one less, for it is printed as it happens."""
        if self._preemptions is None:
            for *_, counters in self.entries:
                counters[Counter.PREEMPTIONS] = float(total - 1)
        self._preemptions = float(total)

    def _counters(self) -> dict[Counter, float]:
        found: dict[Counter, float] = {}
        if self._preemptions is not None:
            found[Counter.PREEMPTIONS] = self._preemptions
        if self._speculates:
            found[Counter.ACCEPTED_TOKENS] = float(self._accepted)
            found[Counter.DRAFTED_TOKENS] = float(self._drafted)
        return found

    def _time_s(self, line: str, place: str) -> float:
        stamp = stamp_of(line)
        if stamp is None:
            raise InputError(f"{place}: a status line without a time such as `07-24 09:55:30`: {shortened(line)!r}")
        before = self._stamp
        if before is not None and stamp < before:
            if before - stamp < HALF_A_YEAR:
                raise InputError(f"{place}: {stamp:%m-%d %H:%M:%S} is before the status line above it; out of order")
            self._years += 1
        self._stamp = stamp
        year_s = timedelta(days=366).total_seconds()
        return stamp.timestamp() + self._years * year_s


def _gauges_of(status: Status, place: str, line: str) -> dict[Gauge, float]:
    quantities = status.quantities
    absent = [name for name in REQUIRED if name not in quantities]
    if absent:
        raise InputError(f"{place}: a status line without {' and '.join(absent)}; is it cut off? {shortened(line)!r}")
    for name, value in quantities.items():
        if math.isnan(value) or value < 0:
            raise InputError(f"{place}: {name} is {value:g}; expected a number of at least 0")
    if quantities["kv_percent"] > 100:
        raise InputError(f"{place}: KV cache usage is {quantities['kv_percent']:g} %; expected at most 100 %")
    waits = sum(quantities.get(name, 0.0) for name in ("waiting", "swapped", "deferred"))
    gauges = {
        Gauge.RUNNING: quantities["running"],
        Gauge.WAITING: waits,
        Gauge.KV_USAGE_RATIO: quantities["kv_percent"] / 100.0,
    }
    gauges |= {gauge: quantities[name] for gauge, name in RATES.items() if name in quantities}
    if "hit_percent" in quantities:
        gauges[Gauge.LOGGED_PREFIX_HIT_RATIO] = quantities["hit_percent"] / 100.0
    return gauges


def _name(replica: str | None, engine: str, several: bool) -> str:
    base = replica or "engine"
    return f"{base}/{engine}" if engine and (several or replica is None) else base
