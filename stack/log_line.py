"""The grammar of one line of vLLM's log: its time, the periodic status of either engine generation, and warnings."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from types import MappingProxyType

from stack.reading import Gauge

LEAP_YEAR = 1972
"""Stands in where the line names no year, as vLLM's does; it has a 29 February. Only differences mean anything."""

_TIME = re.compile(r"(?:(?P<year>\d{4})-)?(?P<month>\d\d)-(?P<day>\d\d)[ T](?P<clock>\d\d:\d\d:\d\d)")
_STATUS = re.compile(r"\bAvg prompt throughput:|\bRunning: \d+ reqs")
_ENGINE = re.compile(r"\bEngine (?P<engine>\d+)\b")
_AGGREGATED = re.compile(r"\bEngines? Aggregated\b")
_NUMBER = r"\s*(-?[\d.]+|nan)"
_QUANTITIES: Mapping[str, re.Pattern[str]] = MappingProxyType(
    {
        "prompt_rate": re.compile(rf"Avg prompt throughput:{_NUMBER}"),
        "generation_rate": re.compile(rf"Avg generation throughput:{_NUMBER}"),
        "running": re.compile(rf"\bRunning:{_NUMBER}"),
        "waiting": re.compile(rf"\b(?:Waiting|Pending):{_NUMBER}"),
        "swapped": re.compile(rf"\bSwapped:{_NUMBER}"),
        "deferred": re.compile(rf"\bDeferred:{_NUMBER}"),
        "kv_percent": re.compile(rf"(?<!CPU )\bKV cache usage:{_NUMBER}"),
        "hit_percent": re.compile(rf"(?<!External )(?<!MM )\bPrefix cache hit rate:(?: GPU:)?{_NUMBER}"),
    }
)
_CUMULATIVE_PREEMPTIONS = re.compile(r"total_num_cumulative_preemption=(\d+)")
_DRAFTS = re.compile(r"Accepted:\s*(\d+) tokens, Drafted:\s*(\d+) tokens")
_OUT_OF_MEMORY = re.compile(r"out of memory|OutOfMemoryError", re.IGNORECASE)

REQUIRED = ("running", "waiting", "kv_percent")
RATES: Mapping[Gauge, str] = MappingProxyType(
    {Gauge.PROMPT_TOKENS_PER_S: "prompt_rate", Gauge.GENERATION_TOKENS_PER_S: "generation_rate"}
)


@dataclass(frozen=True)
class Status:
    """One periodic line: quantities under our names, percent as printed."""

    engine: str
    quantities: Mapping[str, float]


def stamp_of(line: str) -> datetime | None:
    """The time in the line, in UTC as far as known; None when it has none or an impossible one."""
    match = _TIME.search(line)
    if match is None:
        return None
    year = int(match["year"] or LEAP_YEAR)
    hour, minute, second = (int(part) for part in match["clock"].split(":"))
    try:
        return datetime(year, int(match["month"]), int(match["day"]), hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None


def status_of(line: str) -> Status | None:
    """The periodic status in the line; None for other lines and for sums over several engines."""
    if not _STATUS.search(line) or _AGGREGATED.search(line):
        return None
    engine = _ENGINE.search(line)
    found = {name: pattern.search(line) for name, pattern in _QUANTITIES.items()}
    quantities = {name: _number(match[1]) for name, match in found.items() if match is not None}
    return Status("" if engine is None else engine["engine"], quantities)


def cumulative_preemptions(line: str) -> int | None:
    """Preemptions since start, from v0's warning; it is printed at the first, the 51st, the 101st ..."""
    match = _CUMULATIVE_PREEMPTIONS.search(line)
    return None if match is None else int(match[1])


def drafted(line: str) -> tuple[int, int] | None:
    """(accepted, drafted) tokens of the interval, from v1's speculation line."""
    match = _DRAFTS.search(line)
    return None if match is None else (int(match[1]), int(match[2]))


def is_out_of_memory(line: str) -> bool:
    """Whether the line reports that device memory ran out."""
    return bool(_OUT_OF_MEMORY.search(line))


def _number(text: str) -> float:
    try:
        return float(text.rstrip("."))
    except ValueError:
        return float("nan")
