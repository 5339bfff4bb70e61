"""Readings as Prometheus text, under the names of today's vLLM and HAProxy."""

import math
from collections.abc import Iterable, Mapping

from stack import metric_names as names
from stack.reading import GATEWAY, Counter, Gauge, Histogram, Reading, View
from stack.setting import Value

PROXY = "pool"
FRONTEND = "users"
_ENGINE = names.ENGINE_PREFIXES[0]
_NOT_LABELS = frozenset({"model_name", "engine", "started_s", "gateway_state", "gateway_started_s"})
"""Facts that stand elsewhere, or whose name is a label by which replicas are told apart."""
_REASON = {Counter.FINISHED: "stop", Counter.ABORTED: "abort", Counter.ERRORS: "error"}
_STATES = ("DOWN", "UP", "MAINT", "DRAIN")


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


class _Page:
    """Lines grouped by metric, as the format demands."""

    def __init__(self) -> None:
        self._families: dict[str, tuple[str, list[str]]] = {}

    def add(self, family: str, kind: str, labels: Mapping[str, str], value: float, suffix: str = "") -> None:
        lines = self._families.setdefault(family, (kind, []))[1]
        inside = ",".join(f'{name}="{_escaped(text)}"' for name, text in labels.items())
        lines.append(f"{family}{suffix}{{{inside}}} {value!r}" if inside else f"{family}{suffix} {value!r}")

    def text(self) -> str:
        parts = [f"# TYPE {name} {kind}\n" + "\n".join(lines) for name, (kind, lines) in self._families.items()]
        return "\n".join(parts) + "\n" if parts else ""


def render(readings: Iterable[Reading]) -> str:
    """One scrape that holds all `readings`: vLLM's metrics by instance, HAProxy's by server.

    A reading may hold both kinds; what has no wire name (prefixes, rates of a log line) is left out.
    """
    page = _Page()
    readings = tuple(readings)
    at_servers = sum(one.gauges.get(Gauge.GATEWAY_QUEUE, 0.0) for one in readings if one.replica != GATEWAY)
    for reading in readings:
        if reading.replica != GATEWAY and reading.view is View.ENGINE:
            _add_engine(page, reading)
        if reading.replica == GATEWAY:
            _add_gateway(page, reading, at_servers)
        else:
            _add_server(page, reading)
    return page.text()


def _add_engine(page: _Page, reading: Reading) -> None:
    labels = {
        "engine": "0",
        "instance": reading.replica,
        "model_name": str(reading.configuration.get("model_name", "model")),
    }
    for name, value in _engine_gauges(reading.gauges).items():
        page.add(name, "gauge", labels, value)
    for counter, wires in names.ENGINE_COUNTERS.items():
        if counter in reading.counters:
            page.add(_ENGINE + wires[0], "counter", labels, reading.counters[counter])
    for counter, reason in _REASON.items():
        if counter in reading.counters:
            reasoned = {**labels, names.FINISHED_REASON: reason}
            page.add(_ENGINE + names.FINISHED_REQUESTS, "counter", reasoned, reading.counters[counter])
    for distribution, histogram in reading.histograms.items():
        _add_histogram(page, _ENGINE + names.ENGINE_HISTOGRAMS[distribution][0], labels, histogram)
    _add_configuration(page, labels, reading.configuration)


def _engine_gauges(gauges: Mapping[Gauge, float]) -> dict[str, float]:
    wires = {gauge: _ENGINE + known[0] for gauge, known in names.ENGINE_GAUGES.items()}
    wires |= {gauge: names.PROBE_PREFIX + name for gauge, name in names.PROBE_GAUGES.items()}
    return {wires[gauge]: value for gauge, value in gauges.items() if gauge in wires}


def _add_histogram(page: _Page, name: str, labels: Mapping[str, str], histogram: Histogram) -> None:
    for bound, count in zip(histogram.bounds, histogram.cumulative, strict=True):
        le = "+Inf" if math.isinf(bound) else repr(float(bound))
        page.add(name, "histogram", {**labels, "le": le}, count, "_bucket")
    page.add(name, "histogram", labels, histogram.count, "_count")
    if not math.isnan(histogram.total):
        page.add(name, "histogram", labels, histogram.total, "_sum")


def _add_configuration(page: _Page, labels: Mapping[str, str], configuration: Mapping[str, Value]) -> None:
    told = {name: str(value) for name, value in configuration.items() if name not in _NOT_LABELS}
    if told:
        page.add(_ENGINE + names.CONFIGURATION, "gauge", {**labels, **told}, 1.0)
    if "started_s" in configuration:
        instance = {"instance": labels["instance"]}
        page.add(names.PROCESS_START, "gauge", instance, float(configuration["started_s"]))


def _add_server(page: _Page, reading: Reading) -> None:
    labels = {"proxy": PROXY, "server": reading.replica}
    seen = False
    for gauge, wires in names.SERVER_GAUGES.items():
        if gauge in reading.gauges:
            seen = True
            page.add(wires[0], "gauge", labels, reading.gauges[gauge])
    if Gauge.UP in reading.gauges:
        _add_state(page, labels, reading)
    if not seen and reading.view is View.ENGINE:
        return
    if Counter.ARRIVED in reading.counters:
        page.add(names.SERVER_ARRIVED, "counter", labels, reading.counters[Counter.ARRIVED])
    if Counter.ERRORS in reading.counters:
        failed = {**labels, "code": "5xx"}
        page.add(names.SERVER_RESPONSES, "counter", failed, reading.counters[Counter.ERRORS])


def _add_state(page: _Page, labels: Mapping[str, str], reading: Reading) -> None:
    up = reading.gauges[Gauge.UP] > 0
    state = str(reading.configuration.get("gateway_state", "UP" if up else "DOWN"))
    for name in _STATES:
        page.add(names.SERVER_STATUS, "gauge", {**labels, "state": name}, float(name == state))


def _add_gateway(page: _Page, reading: Reading, at_servers: float) -> None:
    """A backend's own queue excludes the requests that already wait for one of its servers."""
    backend, frontend = {"proxy": PROXY}, {"proxy": FRONTEND}
    if Gauge.GATEWAY_QUEUE in reading.gauges:
        unassigned = max(0.0, reading.gauges[Gauge.GATEWAY_QUEUE] - at_servers)
        page.add(names.BACKEND_QUEUE, "gauge", backend, unassigned)
    if Gauge.GATEWAY_SESSIONS in reading.gauges:
        page.add(names.BACKEND_SESSIONS, "gauge", backend, reading.gauges[Gauge.GATEWAY_SESSIONS])
    if Counter.ARRIVED in reading.counters:
        page.add(names.FRONTEND_ARRIVED, "counter", frontend, reading.counters[Counter.ARRIVED])
    if Counter.SHED in reading.counters:
        page.add(names.FRONTEND_REFUSED[0], "counter", frontend, reading.counters[Counter.SHED])
    if Counter.ERRORS in reading.counters:
        failed = {**backend, "code": "5xx"}
        page.add(names.BACKEND_RESPONSES, "counter", failed, reading.counters[Counter.ERRORS])
    if "gateway_started_s" in reading.configuration:
        page.add(names.GATEWAY_START, "gauge", {}, float(reading.configuration["gateway_started_s"]))
