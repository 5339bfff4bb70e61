"""HAProxy's part of a scrape: one reading per server and one for the gateway as a whole."""

import math
from collections import defaultdict

from stack import metric_names as names
from stack.errors import InputError
from stack.metric_line import MetricLine, problem_with
from stack.reading import GATEWAY, Counter, Gauge, Reading, View
from stack.setting import Value

_SUMMED = frozenset({Gauge.GATEWAY_QUEUE, Gauge.GATEWAY_SESSIONS})


class GatewayScrape:
    """Collects the HAProxy lines of one scrape and turns them into readings.

    A server that several backends list under one name is one replica: its sessions, queues and counts are summed over
    the backends; weight, limit and state are those of the backend that has sent it most.
    """

    def __init__(self, source: str, *, strict: bool) -> None:
        self._source = source
        self._strict = strict
        self._servers: dict[str, dict[str, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
        self._totals: dict[str, float] = defaultdict(float)
        self._warnings: list[str] = []

    def add(self, line: MetricLine) -> None:
        """Take one line; HAProxy's NaN means that the figure does not apply, so it is passed over.

        Raises:
            InputError: the value is negative or infinite and the scrape is read strictly.
        """
        if line.name not in names.GATEWAY_NAMES or math.isnan(line.value):
            return
        problem = problem_with(line.value)
        if problem and self._strict:
            raise InputError(f"{line.place}: {line.name} {problem} ({line.value:g}); expected a number of at least 0")
        if problem:
            self._warnings.append(f"{line.place}: {line.name} {problem} ({line.value:g}) and was left out")
            return
        server, proxy = line.labels.get("server"), line.labels.get("proxy", "")
        if server is not None:
            _keep_server_line(self._servers[server][proxy], line)
        elif not _is_housekeeping(proxy):
            self._keep_total(line)

    def readings(self, time_s: float | None) -> list[Reading]:
        """One reading per server and one named `GATEWAY`; none when no HAProxy line was seen."""
        found = [self._server(name, time_s) for name in sorted(self._servers)]
        if found or self._totals:
            found.append(self._gateway(time_s))
        return found

    def _keep_total(self, line: MetricLine) -> None:
        code = line.labels.get("code")
        name = f"{line.name}:{code}" if code else line.name
        self._totals[name] += line.value

    def _server(self, name: str, time_s: float | None) -> Reading:
        backends = list(self._servers[name].values())
        busiest = max(backends, key=lambda facts: facts.get(names.SERVER_ARRIVED, 0.0))
        gauges: dict[Gauge, float] = {}
        for gauge, wires in names.SERVER_GAUGES.items():
            wire = next((wire for wire in wires if wire in busiest), None)
            if wire is not None:
                gauges[gauge] = sum(facts.get(wire, 0.0) for facts in backends) if gauge in _SUMMED else busiest[wire]
        configuration: dict[str, Value] = {}
        state = next((key for key, value in busiest.items() if key.startswith("state:") and value == 1), None)
        if state is not None:
            configuration["gateway_state"] = state.removeprefix("state:")
            gauges[Gauge.UP] = 0.0 if configuration["gateway_state"] in {"DOWN", "MAINT"} else 1.0
        counters = {Counter.ARRIVED: _summed(backends, names.SERVER_ARRIVED), Counter.ERRORS: _summed(backends, "5xx")}
        return Reading(
            replica=name,
            time_s=time_s,
            gauges=gauges,
            counters={counter: value for counter, value in counters.items() if value is not None},
            configuration=configuration | self._start(),
            view=View.GATEWAY,
            origin=self._source,
        )

    def _gateway(self, time_s: float | None) -> Reading:
        totals = self._totals
        gauges, counters = {}, {}
        if names.BACKEND_QUEUE in totals:
            stuck = sum(facts.get(wire, 0.0) for facts in self._backends() for wire in _QUEUE)
            gauges[Gauge.GATEWAY_QUEUE] = totals[names.BACKEND_QUEUE] + stuck
        if names.BACKEND_SESSIONS in totals:
            gauges[Gauge.GATEWAY_SESSIONS] = totals[names.BACKEND_SESSIONS]
        if names.FRONTEND_ARRIVED in totals:
            counters[Counter.ARRIVED] = totals[names.FRONTEND_ARRIVED]
        refused = [totals[name] for name in names.FRONTEND_REFUSED if name in totals]
        if refused:
            counters[Counter.SHED] = sum(refused)
        if f"{names.BACKEND_RESPONSES}:5xx" in totals:
            counters[Counter.ERRORS] = totals[f"{names.BACKEND_RESPONSES}:5xx"]
        return Reading(
            GATEWAY,
            time_s,
            gauges,
            counters,
            configuration=self._start(),
            view=View.GATEWAY,
            origin=self._source,
            warnings=tuple(self._warnings),
        )

    def _backends(self) -> list[dict[str, float]]:
        return [facts for backends in self._servers.values() for facts in backends.values()]

    def _start(self) -> dict[str, Value]:
        start = self._totals.get(names.GATEWAY_START)
        return {} if start is None else {"gateway_started_s": start}


_QUEUE = names.SERVER_GAUGES[Gauge.GATEWAY_QUEUE]


def _keep_server_line(facts: dict[str, float], line: MetricLine) -> None:
    if line.name == names.SERVER_STATUS:
        facts[f"state:{line.labels.get('state', '')}"] = line.value
    elif line.name == names.SERVER_RESPONSES:
        facts[line.labels.get("code", "")] = line.value
    else:
        facts[line.name] = line.value


def _is_housekeeping(proxy: str) -> bool:
    return any(word in proxy for word in names.HOUSEKEEPING_PROXIES)


def _summed(backends: list[dict[str, float]], name: str) -> float | None:
    values = [facts[name] for facts in backends if name in facts]
    return sum(values) if values else None
