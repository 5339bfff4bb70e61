"""One sample line of Prometheus text, with its place, so that a complaint can name it."""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families

from stack.errors import InputError
from stack.metric_names import ENGINE_PREFIXES, PROBE_PREFIX, PROCESS_START

_KNOWN = (*ENGINE_PREFIXES, PROBE_PREFIX, "haproxy_", PROCESS_START)
LINE_MAX = 65_536
"""Longest line, in characters: a hundred labels of usual length; parsing takes time with the square of their number."""
_WELL_FORMED = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*(\{.*\})?\s+\S+(\s+-?\d+)?(\s+#.*)?$")


@dataclass(frozen=True)
class MetricLine:
    """A sample and where it stands.

    Attributes:
        place: file or address and line, for messages.
    """

    name: str
    labels: dict[str, str]
    value: float
    place: str
    number: int


def text_of(data: bytes, source: str) -> str:
    """The text in `data`.

    Raises:
        InputError: it is empty or not text.
    """
    if not data.strip():
        raise InputError(f"{source}: the file is empty; expected Prometheus text, an engine log or an incident folder")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise InputError(f"{source}, line {line}: not text (byte {error.start} is not UTF-8)") from error
    if "\0" in text:
        line = text[: text.index("\0")].count("\n") + 1
        raise InputError(f"{source}, line {line}: not text (a zero byte)")
    return text


def is_known(name: str) -> bool:
    """Whether a metric of that name is one we read."""
    return name.startswith(_KNOWN)


def lines_in(text: str, source: str) -> Iterator[MetricLine]:
    """Every sample of a metric we know, in file order.

    Raises:
        InputError: a line is not Prometheus text, or a series stands there twice.
    """
    seen: dict[tuple[str, frozenset[tuple[str, str]]], int] = {}
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        if len(line) > LINE_MAX:
            raise InputError(f"{source}, line {number}: expected at most {LINE_MAX} characters, found {len(line)}")
        if not _WELL_FORMED.match(line):
            raise InputError(f"{source}, line {number}: expected `metric{{labels}} value`, found {shortened(line)!r}")
        if not is_known(line):
            continue
        sample = _parsed(line, source, number)
        key = (sample.name, frozenset(sample.labels.items()))
        if key in seen:
            raise InputError(
                f"{source}, line {number}: the series {shortened(line)!r} stands already in line {seen[key]}; the file "
                "holds two moments or two processes, give one file per scrape in time order"
            )
        seen[key] = number
        yield sample


def shortened(line: str, limit: int = 80) -> str:
    """`line`, cut to fit into a one-line message."""
    return line if len(line) <= limit else line[: limit - 3] + "..."


def _parsed(line: str, source: str, number: int) -> MetricLine:
    try:
        family = next(iter(text_string_to_metric_families(line)))
    except (ValueError, StopIteration) as error:
        raise InputError(f"{source}, line {number}: not Prometheus text: {shortened(line)!r}") from error
    sample = family.samples[0]
    return MetricLine(sample.name, sample.labels, float(sample.value), f"{source}, line {number}", number)


def problem_with(value: float) -> str | None:
    """Why `value` cannot be a count, size or duration, or None when it can."""
    if math.isnan(value):
        return "is NaN"
    if math.isinf(value):
        return "is infinite"
    return "is negative" if value < 0 else None
