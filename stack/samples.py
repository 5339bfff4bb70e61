"""Samples of one scrape, from a recording or from a time series database, to readings."""

from collections.abc import Iterable

from stack.engine_exposition import EngineScrape
from stack.gateway_exposition import GatewayScrape
from stack.metric_line import MetricLine, is_known
from stack.reading import GATEWAY, Reading


def readings_of(lines: Iterable[MetricLine], time_s: float, target: str, source: str) -> list[Reading]:
    """The readings in the samples that one target showed at one moment.

    Impossible values are left out with a warning, as on the live stack.

    Args:
        lines: samples of that moment; metrics that we do not know are passed over.
        time_s: when it was scraped, seconds since the epoch.
        target: the replica, or `GATEWAY` for an exporter that speaks of all servers.
        source: file or address, for messages.
    """
    engine, gateway = EngineScrape(source, strict=False), GatewayScrape(source, strict=False)
    for line in lines:
        if is_known(line.name):
            (gateway if line.name.startswith("haproxy_") else engine).add(line)
    return engine.readings(time_s, target) + [one for one in gateway.readings(time_s) if _says_something(one)]


def _says_something(reading: Reading) -> bool:
    """A sample of a single server says nothing of the gateway as a whole."""
    return reading.replica != GATEWAY or bool(reading.gauges or reading.counters)
