"""A simulated vLLM cluster in virtual time, whose settings can change in the middle of a run."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from stack.catalogue import SETTINGS
from stack.errors import InputError
from stack.reading import Reading
from stack.setting import SettingClass, Value
from stack.simulator.engine import layout
from stack.simulator.engine.kernels import kernels
from stack.simulator.engine.layout import Tables
from stack.simulator.faults.effects import EFFECTS, FRAGMENTATION_RATIO, Site, flooded
from stack.simulator.faults.fault import Fault
from stack.simulator.faults.truth import Truth
from stack.simulator.fleet import FleetSpec
from stack.simulator.load.traffic import Traffic
from stack.simulator.outcomes import CommonLimits, Limits, Outcomes, outcomes_of
from stack.simulator.readings import (
    USUAL_FRAGMENTATION_RATIO,
    engine_reading,
    gateway_reading,
    kv_usage_ratio,
    server_reading,
    spoiled,
)
from stack.simulator.switchboard import Switchboard
from stack.simulator.world import forked, new_world

EPOCH_S = 1_767_225_600.0
"""Virtual time zero on the clock of readings: 2026-01-01, 00:00 UTC."""


class Simulation:
    """One run: traffic through a gateway to a fleet of engines.

    Deterministic: the same arguments and the same calls give the same figures, compiled or not. The object holds the
    hidden truth; what an agent may see of it are `readings` and `settings`.
    """

    def __init__(
        self,
        fleet: FleetSpec,
        traffic: Traffic,
        *,
        faults: Sequence[Fault] = (),
        seed: int = 0,
        step_times: Tables | None = None,
        step_scale: Sequence[float] | None = None,
        settings: Mapping[str, Mapping[str, Value]] | None = None,
        compiled: bool | None = None,
        macro_steps: bool = True,
    ) -> None:
        """Set the stage at virtual time zero.

        Args:
            fleet: replicas and hardware.
            traffic: requests to come.
            faults: what goes wrong, and when.
            seed: chooses the replicas that faults hit and what floods consist of.
            step_times: tables to use instead of the fleet's own.
            step_scale: factor on step times per replica, as a calibration gives it.
            settings: values per setting and target to start from, instead of the catalogue's defaults.
            compiled: numba or plain Python; None takes numba where it is installed.
            macro_steps: take equal decode steps together, which changes times by less than 0.3 %.

        Raises:
            InputError: no step times for this fleet, a fault names a replica that does not exist, or step_scale has
                not one positive entry per replica.
        """
        for fault in faults:
            if fault.replica is not None and fault.replica >= fleet.replicas:
                raise InputError(f"fault {fault.name}: there is no replica {fault.replica} among {fleet.replicas}")
            traffic = flooded(traffic, fault, seed)
        self.fleet, self.traffic, self._seed = fleet, traffic, seed
        self._tables = step_times or fleet.step_times
        self._kernels = kernels(compiled)
        self._world = new_world(fleet, traffic)
        self._world.constant[layout.MACRO_STEPS] = macro_steps
        self._truth = Truth(coming=sorted(faults, key=lambda fault: fault.at_s))
        self._switchboard = Switchboard(self._world, fleet, self._kernels)
        self._start(step_scale, settings or {})

    @property
    def now_s(self) -> float:
        """Virtual seconds since the start."""
        return float(self._world.clock_s[layout.NOW_S])

    def advance(self, until_s: float) -> None:
        """Let virtual time pass up to `until_s`; a time in the past does nothing."""
        coming = self._truth.coming
        while coming and coming[0].at_s <= until_s:
            fault = coming.pop(0)
            self._pass(fault.at_s)
            self._strike(fault)
        self._pass(until_s)

    def read(self, setting: str, target: str) -> Value:
        """The value in force; see `stack.control.StackControl.read`."""
        return self._switchboard.read(setting, target)

    def write(self, setting: str, target: str, value: Value) -> Value:
        """Set a value from now on; see `stack.control.StackControl.write`."""
        return self._switchboard.write(setting, target, value)

    def settings(self) -> dict[str, dict[str, Value]]:
        """Every value in force, by setting and target."""
        found: dict[str, dict[str, Value]] = {}
        for name, target, value in self._switchboard.everything():
            found.setdefault(name, {})[target] = value
        return found

    def fork(self, *, step_times: Tables | None = None) -> "Simulation":
        """An independent copy of everything, faults to come included; with `step_times` it goes on under these."""
        copy = object.__new__(type(self))
        copy.fleet, copy.traffic, copy._seed = self.fleet, self.traffic, self._seed
        copy._tables, copy._kernels = step_times or self._tables, self._kernels
        copy._world, copy._truth = forked(self._world), self._truth.copy()
        copy._switchboard = self._switchboard.copy_for(copy._world)
        return copy

    def readings(self) -> list[Reading]:
        """What metrics tell at this moment: engines that answer, the gateway's view of each replica, the gateway."""
        time_s = EPOCH_S + self.now_s
        engines = list(self._engine_readings(time_s))
        servers = [server_reading(self._world, self.fleet, r, time_s) for r in range(self.fleet.replicas)]
        return [*engines, *servers, gateway_reading(self._world, time_s)]

    def outcomes(self) -> Outcomes:
        """What has become of every request so far."""
        return outcomes_of(self._world)

    def slo_share(self, limits: Limits | None = None, from_s: float = 0.0, to_s: float = np.inf) -> float:
        """Share of the requests arriving in [from_s, to_s) that finished within their limits.

        Shed, lost, rejected and unfinished requests count as bad. NaN when none arrived.
        """
        outcomes = self.outcomes()
        inside = (outcomes.arrival_s >= from_s) & (outcomes.arrival_s < to_s)
        good = outcomes.good(limits or CommonLimits(), self.fleet.batch_limit_s)
        return float(good[inside].mean()) if inside.any() else float("nan")

    def kv_usage_ratio(self) -> float:
        """Share of the usable KV blocks that requests hold at this moment, on the replica where it is largest."""
        return max(kv_usage_ratio(self._world, r) for r in range(self.fleet.replicas))

    def busy_ratio(self) -> float:
        """Mean share of the time in which replicas were executing steps."""
        return min(1.0, float(self._world.real[:, layout.BUSY_S].mean()) / max(self.now_s, 1e-9))

    def _start(self, step_scale: Sequence[float] | None, settings: Mapping[str, Mapping[str, Value]]) -> None:
        for setting in SETTINGS:
            for target in self._switchboard.targets(setting):
                if setting.setting_class is not SettingClass.C:
                    self._switchboard.place(setting.name, target, setting.default)
        for name, values in settings.items():
            for target, value in values.items():
                self._switchboard.start_with(name, target, value)
        if step_scale is not None:
            if len(step_scale) != self.fleet.replicas or min(step_scale) <= 0:
                raise InputError(f"step_scale needs {self.fleet.replicas} positive entries, not {list(step_scale)}")
            self._world.real[:, layout.HARDWARE_SCALE] = step_scale

    def _pass(self, until_s: float) -> None:
        if until_s > self.now_s:
            self._kernels.advance(self._world, self._tables, float(until_s))

    def _strike(self, fault: Fault) -> None:
        self._truth.begun.append(fault)
        replica = fault.replica
        if replica is None:
            replica = int(np.random.default_rng([self._seed, len(self._truth.begun)]).integers(self.fleet.replicas))
        EFFECTS[fault.name](
            Site(self._world, self.fleet, self._switchboard, self._kernels, self._truth, replica, self.now_s, EPOCH_S)
        )

    def _engine_readings(self, time_s: float) -> Iterator[Reading]:
        truth, replica = self._truth, self._world.replica
        for r in range(self.fleet.replicas):
            if r in truth.absent or replica[r, layout.PHASE] in (layout.DOWN, layout.RESTARTING):
                continue
            if r in truth.frozen:
                yield truth.frozen[r]
                continue
            worn = truth.fragmented.get(r) == replica[r, layout.RESTARTS]
            fragmentation = FRAGMENTATION_RATIO if worn else USUAL_FRAGMENTATION_RATIO
            reading = engine_reading(self._world, self.fleet, r, time_s, fragmentation)
            yield spoiled(reading) if r in truth.spoiled else reading
