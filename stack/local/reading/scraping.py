"""Scrapes of our own, kept in memory: what a window comes from where Prometheus cannot give it."""

import threading
from collections import deque
from collections.abc import Mapping

import httpx

from stack.clock import Clock
from stack.errors import FlashVectorError
from stack.fetch import Limits
from stack.local.configuration import LocalStack
from stack.local.reading.beat import Beat, Beats
from stack.reading import GATEWAY, Reading
from stack.scrape import scraped

LIMITS = Limits(connect_s=1.0, silence_s=2.0, total_s=4.0, most_bytes=16 * 1024 * 1024)
"""Of one scrape: an engine's answer is about 60 kB and comes within milliseconds."""
KEPT_S = 900.0
JOIN_S = LIMITS.total_s + LIMITS.silence_s + 1.0


class ScrapedTarget:
    """One address and its newest readings.

    Args:
        name: the replica, or `GATEWAY`.
        kept: scrapes that are kept.
    """

    def __init__(self, name: str, address: str, clock: Clock, client: httpx.Client, kept: int) -> None:
        self._name, self._address, self._clock, self._client = name, address, clock, client
        self._lock = threading.Lock()
        self._scrapes: deque[tuple[float, tuple[Reading, ...]]] = deque(maxlen=kept)
        self._problem: str | None = "not scraped yet"

    @property
    def problem(self) -> str | None:
        """Why the newest scrape failed; None where it did not."""
        return self._problem

    def scrape(self) -> None:
        """Take one scrape; what goes wrong is kept as the problem."""
        try:
            found = scraped(self._address, self._clock, replica=self._name, limits=LIMITS, client=self._client)
        except FlashVectorError as error:
            self._problem = str(error)
            return
        with self._lock:
            self._scrapes.append((self._clock.now_s(), tuple(found)))
        self._problem = None

    def readings(self, start_s: float, end_s: float) -> list[Reading]:
        """What was read from `start_s` to `end_s`, in time order."""
        with self._lock:
            scrapes = [readings for time_s, readings in self._scrapes if start_s <= time_s <= end_s]
        return [reading for readings in scrapes for reading in readings]


class Scraping:
    """Scrapes every replica and the gateway's exporter.

    Each has a thread of its own, so that one that hangs costs only its own readings.

    Args:
        interval_s: time between two scrapes of a target.
        kept_s: how far back readings are kept.
    """

    def __init__(self, configuration: LocalStack, clock: Clock, *, interval_s: float, kept_s: float = KEPT_S) -> None:
        self._client = httpx.Client(trust_env=False)
        kept = int(kept_s / interval_s) + 2
        self._targets = {
            name: ScrapedTarget(name, address, clock, self._client, kept)
            for name, address in addresses(configuration).items()
        }
        self._beats = Beats(Beat(one.scrape, interval_s, f"scrape {name}") for name, one in self._targets.items())

    def start(self) -> None:
        """Begin to scrape."""
        self._beats.start()

    def stop(self) -> None:
        """End all scraping; a scrape in progress ends within its limits."""
        self._beats.stop(JOIN_S)
        self._client.close()

    def wait_for_first(self) -> None:
        """Wait until every target was tried once."""
        self._beats.wait_for_first(JOIN_S)

    def readings(self, start_s: float, end_s: float) -> list[Reading]:
        """What was read from `start_s` to `end_s`, each target's in time order."""
        return [one for target in self._targets.values() for one in target.readings(start_s, end_s)]

    @property
    def problems(self) -> Mapping[str, str]:
        """Why the newest scrape of a target failed, for those where it did."""
        return {name: problem for name, one in self._targets.items() if (problem := one.problem) is not None}


def addresses(configuration: LocalStack) -> Mapping[str, str]:
    """The metrics address per replica, and that of the gateway's exporter under `GATEWAY`."""
    found = {replica.name: f"{replica.url}/metrics" for replica in configuration.replicas}
    return {**found, GATEWAY: f"{configuration.gateway.metrics_url}/metrics"}
