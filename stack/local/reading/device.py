"""Device memory per replica: free and total from NVML, fragmentation from the plugin's view of torch's allocator."""

import ipaddress
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import httpx

from stack.clock import Clock
from stack.local.configuration import LocalStack, Replica
from stack.local.reading.beat import Beat, Beats
from stack.local.reading.engine_facts import LIMITS, EngineFacts
from stack.local.reading.nvml import DeviceMemory, NoDevice, Nvml, visible_devices
from stack.reading import Gauge, Reading, View
from stack.redaction import clean

INTERVAL_S, WITHOUT_DEVICE_S = 10.0, 60.0
"""Time between two looks: memory moves slowly, and the plugin asks every worker between two engine steps."""
KEPT = 360


@dataclass(frozen=True)
class _Look:
    time_s: float
    gauges: Mapping[Gauge, float]


class DeviceProbe:
    """Looks at the devices of every replica in the background.

    NVML answers for this machine only; a replica elsewhere is known by what the plugin tells. Where both fail the
    reason is kept, and nothing raises.
    """

    def __init__(self, configuration: LocalStack, clock: Clock, nvml: Nvml | None = None) -> None:
        self._client, self._nvml = httpx.Client(trust_env=False), nvml or Nvml()
        self._probes = [
            _ReplicaProbe(configuration, one, clock, self._nvml, self._client) for one in configuration.replicas
        ]
        self._beats = Beats(Beat(probe.look, INTERVAL_S, f"device {probe.name}") for probe in self._probes)

    def start(self) -> None:
        """Begin to look."""
        self._beats.start()

    def stop(self) -> None:
        """End."""
        self._beats.stop(LIMITS.total_s + LIMITS.silence_s)
        self._client.close()
        self._nvml.close()

    def look(self) -> None:
        """Look at every replica once, now."""
        for probe in self._probes:
            probe.look()

    def added_to(self, readings: Sequence[Reading]) -> list[Reading]:
        """The readings, each engine's with the figures of the look before it, if that was not long ago."""
        probes = {probe.name: probe for probe in self._probes}
        return [_with_gauges(reading, probes.get(reading.replica)) for reading in readings]

    @property
    def reasons(self) -> Mapping[str, str]:
        """Why there are no figures, per replica without."""
        return {probe.name: probe.reason for probe in self._probes if probe.reason}


class _ReplicaProbe:
    def __init__(
        self, configuration: LocalStack, replica: Replica, clock: Clock, nvml: Nvml, client: httpx.Client
    ) -> None:
        self.name = replica.name
        self.reason = "not looked at yet"
        self._visible = visible_devices(configuration, replica)
        self._is_here, self._clock, self._nvml = _is_here(replica.host), clock, nvml
        self._facts = EngineFacts(configuration, replica, client)
        self._lock, self._looks = threading.Lock(), deque[_Look](maxlen=KEPT)
        self._not_before_s = 0.0

    def look(self) -> None:
        """Take the figures, if it is time for that."""
        if self._clock.now_s() < self._not_before_s:
            return
        workers, problem = _workers(self._facts)
        gauges = {**_told(workers), **self._measured()}
        if not gauges:
            absent = self._nvml.problem if self._is_here else None
            self.reason = f"no device figures: {absent or problem}"
            self._not_before_s = self._clock.now_s() + WITHOUT_DEVICE_S
            return
        self.reason = ""
        with self._lock:
            self._looks.append(_Look(self._clock.now_s(), gauges))

    def before(self, time_s: float) -> Mapping[Gauge, float]:
        """The figures of the newest look at or before `time_s`."""
        with self._lock:
            looks = [one for one in self._looks if time_s - 2 * INTERVAL_S <= one.time_s <= time_s]
        return looks[-1].gauges if looks else {}

    def _measured(self) -> dict[Gauge, float]:
        memory = self._nvml.memory(self._visible) if self._is_here else NoDevice("on another machine")
        if not isinstance(memory, DeviceMemory):
            return {}
        return {Gauge.DEVICE_FREE_BYTES: memory.free_bytes, Gauge.DEVICE_TOTAL_BYTES: memory.total_bytes}


def _with_gauges(reading: Reading, probe: _ReplicaProbe | None) -> Reading:
    if probe is None or reading.time_s is None or reading.view is not View.ENGINE:
        return reading
    gauges = probe.before(reading.time_s)
    return replace(reading, gauges={**reading.gauges, **gauges}) if gauges else reading


def _workers(facts: EngineFacts) -> tuple[list[Mapping[str, Any]], str]:
    """What the plugin tells of each worker's device, and why there is nothing."""
    page = facts.memory()
    listed = page.document.get("workers")
    if page.problem or not isinstance(listed, list):
        return [], page.problem or "the plugin tells nothing of its workers"
    workers: list[Mapping[str, Any]] = [one for one in listed if isinstance(one, dict)]
    with_device = [one for one in workers if one.get("cuda")]
    reason = next((clean(str(one["reason"]))[:160] for one in workers if "reason" in one), "no worker has a device")
    return with_device, "" if with_device else reason


def _told(workers: Sequence[Mapping[str, Any]]) -> dict[Gauge, float]:
    """Sums over the workers; fragmentation is inactive split over reserved bytes of torch.cuda.memory_stats."""
    names = ("device_free_bytes", "device_total_bytes", "inactive_split_bytes", "reserved_bytes")
    if not workers or not all(isinstance(one.get(name), (int, float)) for one in workers for name in names):
        return {}
    free, total, split, reserved = (sum(float(one[name]) for one in workers) for name in names)
    found = {Gauge.DEVICE_FREE_BYTES: free, Gauge.DEVICE_TOTAL_BYTES: total}
    return {**found, Gauge.FRAGMENTATION_RATIO: min(1.0, split / reserved)} if reserved > 0 else found


def _is_here(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
