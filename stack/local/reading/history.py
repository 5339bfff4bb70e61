"""The past from Prometheus: raw samples of a window, as readings with the scrapes' own times."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from prometheus_api_client import PrometheusConnect
from prometheus_api_client.exceptions import PrometheusApiClientException
from pydantic import BaseModel, TypeAdapter, ValidationError
from requests.exceptions import ConnectionError as NoConnectionError
from requests.exceptions import RequestException, Timeout
from urllib3.util import Retry

from stack.errors import InputError
from stack.local.configuration import LocalStack
from stack.local.reading.bounded_session import BoundedSession, TooMuchError
from stack.metric_line import MetricLine
from stack.metric_names import WIRE_NAMES
from stack.reading import GATEWAY, Reading
from stack.redaction import clean, place_of
from stack.samples import readings_of

SILENCE_S = 2
"""Longest wait for a connection, and for the first byte of an answer."""
TOTAL_S = 5.0
MOST_BYTES = 64 * 1024 * 1024
PIECE_S = 300.0
"""Longest range asked at once."""
MOST_SCRAPES = 240
"""Scrapes of a target that are turned into readings; of more, every second, third ... is taken."""
_CAUGHT = (RequestException, PrometheusApiClientException, ValueError, KeyError, TypeError, OSError)


class _Series(BaseModel):
    metric: dict[str, str]
    values: list[tuple[float, float]]


_ANSWER = TypeAdapter(list[_Series])


@dataclass(frozen=True)
class Past:
    """What Prometheus has of a range. Readings of each target are in time order."""

    readings: tuple[Reading, ...]


@dataclass(frozen=True)
class NoPast:
    """Prometheus could not be used, and why, in a few words."""

    reason: str


class Prometheus:
    """The history of a local stack.

    Series are recognised by `instance`: a replica's name or its address, `gateway` or the exporter's address, so a
    Prometheus that somebody else configured serves too.

    Raises:
        InputError: the configuration has no [stack.history].
    """

    def __init__(self, configuration: LocalStack) -> None:
        if configuration.history is None:
            raise InputError("expected a table [stack.history] that says where Prometheus listens, found none")
        url = configuration.history.url
        self._url = clean(url)
        self._targets = _targets(configuration)
        self._session = BoundedSession(total_s=TOTAL_S, most_bytes=MOST_BYTES)
        retry = Retry(total=0, redirect=0)
        self._client = PrometheusConnect(url, session=self._session, timeout=SILENCE_S, retry=retry)
        self._selector = _selector(self._targets)

    def window(self, window_s: float, now_s: float, stale_after_s: float) -> Past | NoPast:
        """The readings of the last `window_s` seconds, if the newest of them is no older than `stale_after_s`."""
        past = self.between(now_s - window_s, now_s)
        if isinstance(past, NoPast):
            return past
        newest_s = max((reading.time_s for reading in past.readings if reading.time_s is not None), default=None)
        if newest_s is None:
            return NoPast(f"{self._url}: answers, but has no sample of this stack in the last {window_s:g} s")
        if now_s - newest_s > stale_after_s:
            return NoPast(f"{self._url}: its newest sample of this stack is {now_s - newest_s:.0f} s old")
        return past

    def between(self, start_s: float, end_s: float) -> Past | NoPast:
        """The readings from `start_s` to `end_s`, seconds since the epoch; perhaps none."""
        found: list[Reading] = []
        try:
            for piece_start_s, piece_end_s in _pieces(start_s, end_s):
                most = math.ceil(MOST_SCRAPES * (piece_end_s - piece_start_s) / (end_s - start_s))
                found += self._readings(piece_start_s, piece_end_s, most)
        except _CAUGHT as error:
            return NoPast(f"{self._url}: {_words(error)}")
        return Past(tuple(found))

    def close(self) -> None:
        """Close the connections."""
        self._session.close()

    def _readings(self, start_s: float, end_s: float, most: int) -> Iterator[Reading]:
        """One instant query with a range selector, which gives samples as they were scraped.

        A range is open at its start from Prometheus 3 on and closed before, so it begins a millisecond late.
        """
        length_ms = max(1, round((end_s - start_s) * 1000) - 1)
        query = f"{self._selector}[{length_ms}ms]"
        answer = _ANSWER.validate_python(self._client.custom_query(query, params={"time": f"{end_s:.3f}"}))
        scrapes = _scrapes(answer, self._targets)
        for target, times in scrapes.items():
            for time_s in _thinned(sorted(times), most):
                yield from readings_of(times[time_s], time_s, target, self._url)


def _targets(configuration: LocalStack) -> Mapping[str, str]:
    """Our name of a target per value that `instance` may have."""
    named = {replica.name: replica.url for replica in configuration.replicas}
    named[GATEWAY] = configuration.gateway.metrics_url
    return {instance: name for name, url in named.items() for instance in (name, place_of(url))}


def _selector(targets: Iterable[str]) -> str:
    names = "|".join(sorted(WIRE_NAMES))
    instances = "|".join(re.escape(target).replace("\\", "\\\\") for target in sorted(targets))
    return f'{{__name__=~"{names}",instance=~"{instances}"}}'


def _pieces(start_s: float, end_s: float) -> Iterator[tuple[float, float]]:
    while start_s < end_s:
        yield start_s, min(start_s + PIECE_S, end_s)
        start_s += PIECE_S


def _scrapes(answer: Iterable[_Series], targets: Mapping[str, str]) -> dict[str, dict[float, list[MetricLine]]]:
    """Samples per target and time: those of one scrape carry one time."""
    found: dict[str, dict[float, list[MetricLine]]] = {}
    for series in answer:
        labels = dict(series.metric)
        name, target = labels.pop("__name__"), targets[labels.pop("instance")]
        labels.pop("job", None)
        times = found.setdefault(target, {})
        for time_s, value in series.values:
            times.setdefault(time_s, []).append(MetricLine(name, labels, value, f"{name} in Prometheus", 0))
    return found


def _thinned(times: list[float], most: int) -> list[float]:
    """At most `most` of the times, evenly, the newest among them."""
    keep_every = math.ceil(len(times) / most)
    return times[::-1][::keep_every][::-1]


def _words(error: Exception) -> str:
    """Why a query failed, without the library's nested texts."""
    if isinstance(error, TooMuchError):
        return str(error)
    if isinstance(error, Timeout):
        return f"no answer within {SILENCE_S} s"
    if isinstance(error, NoConnectionError):
        return "no connection"
    if isinstance(error, PrometheusApiClientException):
        return f"refused the query: {_short(error)}"
    if isinstance(error, (ValidationError, ValueError, KeyError, TypeError)):
        return "what answers there is not Prometheus"
    return f"{type(error).__name__}: {_short(error)}"


def _short(error: Exception) -> str:
    return clean(str(error))[:120]
