"""Settings by name: what is in force, and how a new value takes effect."""

from collections.abc import Iterator

from stack.catalogue import POLICIES, SETTINGS, setting_named
from stack.errors import RefusedError, UnknownSettingError, UnreachableError
from stack.layer import Layer
from stack.setting import Scope, Setting, SettingClass, Value
from stack.simulator.engine import layout
from stack.simulator.engine.kernels import Kernels
from stack.simulator.engine.layout import World
from stack.simulator.execution_profile import effect_of
from stack.simulator.fleet import FleetSpec
from stack.snapshot import FLEET

REPLICA_COLUMN = {
    "routing_weight": layout.WEIGHT,
    "replica_state": layout.DRAINED,
    "replica_concurrency_cap": layout.CONCURRENCY_CAP,
    "running_request_cap": layout.RUNNING_CAP,
    "tokens_per_step": layout.STEP_TOKENS_LIMIT,
    "long_prefill_threshold_tokens": layout.LONG_PREFILL,
    "usable_kv_blocks_ratio": layout.USABLE_RATIO,
}
POOL_COLUMN = {
    "routing_policy": layout.POLICY,
    "queue_limit_requests": layout.QUEUE_LIMIT,
    "deadline_shedding_ratio": layout.DEADLINE_RATIO,
    "priority_policy": layout.PRIORITY,
    "batch_in_flight_cap": layout.BATCH_CAP,
}
CODES = {
    "replica_state": ("ready", "drain"),
    "routing_policy": POLICIES,
    "priority_policy": ("fcfs", "class", "short_first", "class_short_first"),
}


class Switchboard:
    """Reads and writes the settings of one world."""

    def __init__(self, world: World, fleet: FleetSpec, kernels: Kernels) -> None:
        self._world, self._fleet, self._kernels = world, fleet, kernels
        self._launched = {
            (setting.name, target): setting.default
            for setting in SETTINGS
            if setting.setting_class is SettingClass.C
            for target in self.targets(setting)
        }

    def copy_for(self, world: World) -> "Switchboard":
        """The same settings for a copy of the world."""
        copy = Switchboard(world, self._fleet, self._kernels)
        copy._launched = dict(self._launched)
        return copy

    def targets(self, setting: Setting) -> tuple[str, ...]:
        """Where a setting exists."""
        return (FLEET,) if setting.scope is Scope.POOL else self._fleet.replica_names

    def everything(self) -> Iterator[tuple[str, str, Value]]:
        """(setting, target, value in force)."""
        for setting in SETTINGS:
            for target in self.targets(setting):
                yield setting.name, target, self._held(setting.name, target)

    def read(self, name: str, target: str) -> Value:
        """The value in force.

        Raises:
            UnknownSettingError: no such setting, or not on that target.
            UnreachableError: an engine's setting, and its replica is dead.
        """
        self._reachable(self._located(name, target), target)
        return self._held(name, target)

    def write(self, name: str, target: str, value: Value) -> Value:
        """Set a value; it is in force from the next engine step on, a restart setting once the replica is back.

        Raises:
            UnknownSettingError, UnreachableError: as for `read`.
            RefusedError: the value is not one of the setting's.
        """
        setting = self._located(name, target)
        self._reachable(setting, target)
        problem = setting.problem_with(value)
        if problem is not None:
            raise RefusedError(problem, self._held(name, target))
        if setting.setting_class is SettingClass.C:
            self._relaunch(name, target, value)
        else:
            self.place(name, target, value)
        return self._held(name, target)

    def place(self, name: str, target: str, value: Value) -> None:
        """Put a valid value of a restart-free setting into the world."""
        world, number = self._world, float(CODES[name].index(str(value)) if name in CODES else value)
        if target == FLEET:
            world.pool_setting[POOL_COLUMN[name]] = number
        else:
            r = self._fleet.replica_names.index(target)
            world.replica_setting[r, REPLICA_COLUMN[name]] = number
            if name == "usable_kv_blocks_ratio":
                self._kernels.resize(world, r)
        world.cursor[layout.MUST_PUMP] = 1

    def start_with(self, name: str, target: str, value: Value) -> None:
        """Put a value in force before the run begins, restart settings included.

        Raises:
            UnknownSettingError, RefusedError: as for `write`.
        """
        self.write(name, target, value)
        if self._located(name, target).setting_class is SettingClass.C:
            r = self._fleet.replica_names.index(target)
            self._kernels.end_restart(self._world, r)

    def _located(self, name: str, target: str) -> Setting:
        setting = setting_named(name)
        if target not in self.targets(setting):
            raise UnknownSettingError(
                f"{name} does not exist on {target!r}; it does on {', '.join(self.targets(setting))}"
            )
        return setting

    def _reachable(self, setting: Setting, target: str) -> None:
        if setting.layer is Layer.ROUTING:
            return
        if self._world.replica[self._fleet.replica_names.index(target), layout.PHASE] == layout.DOWN:
            raise UnreachableError(f"{target} does not answer, so its {setting.name} is unknown")

    def _held(self, name: str, target: str) -> Value:
        if (name, target) in self._launched:
            return self._launched[name, target]
        if target == FLEET:
            number = float(self._world.pool_setting[POOL_COLUMN[name]])
        else:
            r = self._fleet.replica_names.index(target)
            number = float(self._world.replica_setting[r, REPLICA_COLUMN[name]])
        return CODES[name][int(number)] if name in CODES else number

    def _relaunch(self, name: str, target: str, value: Value) -> None:
        """Drain the replica and restart it under the new profile; the same value again does nothing."""
        if self._launched[name, target] == value:
            return
        launched = {**self._launched, (name, target): value}
        effect = effect_of(str(launched["execution_profile", target]), self._fleet)
        self._launched = launched
        world, r = self._world, self._fleet.replica_names.index(target)
        world.real[r, layout.NEXT_STEP_MS] = effect.step_ms
        world.real[r, layout.NEXT_ATTENTION_SCALE] = effect.attention_scale
        world.replica[r, layout.NEXT_TOTAL_BLOCKS] = effect.kv_blocks
        if world.replica[r, layout.PHASE] == layout.READY:
            world.replica[r, layout.PHASE] = layout.DRAINING
            if world.replica[r, layout.IN_FLIGHT] == 0:
                self._kernels.begin_restart(world, r, world.clock_s[layout.NOW_S])
