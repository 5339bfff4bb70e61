"""Snapshots of a live local stack: Prometheus' windows, our own scrapes where it cannot give them, device figures."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from stack.clock import Clock
from stack.errors import UnreachableError
from stack.local.configuration import LocalStack
from stack.local.reading.choice import chosen, stale_after_s
from stack.local.reading.device import DeviceProbe
from stack.local.reading.history import NoPast, Past, Prometheus
from stack.local.reading.scraping import Scraping
from stack.local.reading.values import InForce
from stack.reading import GATEWAY, Reading
from stack.snapshot import Facts, Missing, Signal, Snapshot
from stack.window import snapshot_of

INTERVAL_S = 2.0
"""Time between two scrapes where no Prometheus is configured to say it."""


class LocalReader:
    """The read side of a local stack. Scrapes in the background from the moment it is made until `close`.

    Args:
        clock: the wall clock, on which all scrapes' times lie.
        in_force: reads the values in force, and what the engines tell of themselves beside their metrics.
    """

    def __init__(self, configuration: LocalStack, clock: Clock, in_force: Callable[[], InForce]) -> None:
        history = configuration.history
        self._interval_s = history.scrape_interval_s if history else INTERVAL_S
        self._configuration, self._clock, self._in_force = configuration, clock, in_force
        self._names = _names(configuration)
        self._history = Prometheus(configuration) if history else None
        self._scraping = Scraping(configuration, clock, interval_s=self._interval_s)
        self._device = DeviceProbe(configuration, clock)
        self._scraping.start()
        self._device.start()

    def close(self) -> None:
        """End the scraping and close all connections."""
        self._scraping.stop()
        self._device.stop()
        if self._history is not None:
            self._history.close()

    def snapshot(self, window_s: float) -> Snapshot:
        """Facts over the last `window_s` seconds; see `stack.reader.StackReader.snapshot`.

        Each target's facts come from Prometheus, or from our own scrapes where Prometheus is absent, stale or began
        later; a warning says so. A target that stopped answering has no facts of its own, and a warning names it.

        Raises:
            UnreachableError: no replica and no gateway answered.
        """
        self._scraping.wait_for_first()
        now_s = self._clock.now_s()
        past, warnings = self._past(window_s, now_s)
        problems, targets = self._scraping.problems, (*self._configuration.names, GATEWAY)
        choice = chosen(
            None if past is None else past.readings,
            self._scraping.readings(now_s - window_s, now_s),
            problems,
            targets,
            now_s=now_s,
            interval_s=self._interval_s,
        )
        if not choice.readings:
            raise UnreachableError(f"nothing of the stack answers: {'; '.join(choice.warnings)}")
        held = self._in_force()
        readings = self._device.added_to(self._ours(choice.readings))
        snapshot = snapshot_of(readings, window_s=window_s, now_s=now_s, settings=held.settings)
        told = {name: {**snapshot.configuration.get(name, {}), **facts} for name, facts in held.configuration.items()}
        snapshot = replace(snapshot, configuration={**snapshot.configuration, **told})
        return self._completed(snapshot, (*warnings, *choice.warnings, *held.problems))

    def _past(self, window_s: float, now_s: float) -> tuple[Past | None, tuple[str, ...]]:
        if self._history is None:
            return None, ()
        past = self._history.window(window_s, now_s, stale_after_s(self._interval_s))
        if isinstance(past, NoPast):
            return None, (f"Prometheus cannot be used, own scrapes were: {past.reason}",)
        return past, ()

    def _ours(self, readings: Sequence[Reading]) -> list[Reading]:
        """Without what is told of anything that is no replica of this stack: names come from the configuration."""
        return [one for one in readings if self._names.fullmatch(one.replica)]

    def _completed(self, snapshot: Snapshot, warnings: Sequence[str]) -> Snapshot:
        """With every configured replica, the reason why device figures are missing, and what was odd."""
        named = {one.partition("/")[0] for one in snapshot.replicas}
        silent: dict[str, Facts] = {one: {} for one in self._configuration.names if one not in named}
        return replace(
            snapshot,
            replicas={**snapshot.replicas, **silent},
            missing=tuple(self._explained(one) for one in snapshot.missing),
            warnings=tuple(dict.fromkeys((*warnings, *snapshot.warnings))),
        )

    def _explained(self, missing: Missing) -> Missing:
        reasons = self._device.reasons
        if missing.signal != Signal.DEVICE_FREE_BYTES or not reasons:
            return missing
        return replace(missing, reason=reasons.get(missing.target, next(iter(reasons.values()))))


def _names(configuration: LocalStack) -> re.Pattern[str]:
    """Of the gateway and the replicas; an engine of several in one replica is called REPLICA/INDEX."""
    names, model = "|".join(map(re.escape, configuration.names)), re.escape(configuration.engine.model)
    return re.compile(rf"{GATEWAY}|({names})(/{model})?(/\d+)?")
