"""Random settings of a stack, and a random change of one of them."""

from collections.abc import Iterator, Mapping

import numpy as np

from harness.action import Action
from stack.catalogue import POLICIES, SETTINGS, setting_named
from stack.errors import StackError
from stack.layer import Layer
from stack.setting import Scope, Setting, SettingClass, Value
from stack.simulator.fleet import FleetSpec
from stack.simulator.simulation import Simulation
from stack.snapshot import FLEET


def random_settings(fleet: FleetSpec, rng: np.random.Generator) -> dict[str, dict[str, Value]]:
    """Each setting at another value than its default in a third of the cases."""
    pool: dict[str, tuple[Value, ...]] = {
        "routing_policy": POLICIES,
        "queue_limit_requests": (8.0, 16.0, 64.0),
        "deadline_shedding_ratio": (0.6, 0.8, 1.0, 2.0),
        "priority_policy": ("class", "short_first", "class_short_first"),
        "batch_in_flight_cap": (4.0, 8.0, 32.0),
    }
    replica: dict[str, tuple[Value, ...]] = {
        "tokens_per_step": (512.0, 1024.0, 2048.0, 4096.0),
        "long_prefill_threshold_tokens": (512.0, 1024.0, 2048.0),
        "running_request_cap": (32.0, 64.0, 128.0, 256.0),
        "usable_kv_blocks_ratio": (0.4, 0.6, 0.8),
        "replica_concurrency_cap": (64.0, 128.0, 256.0),
    }
    found: dict[str, dict[str, Value]] = {}
    for name, values in pool.items():
        if rng.random() < 1 / 3:
            found[name] = {FLEET: values[rng.integers(len(values))]}
    for name, values in replica.items():
        if rng.random() < 1 / 3:
            found[name] = dict.fromkeys(fleet.replica_names, values[rng.integers(len(values))])
    if rng.random() < 1 / 3:
        found["routing_weight"] = {name: float(rng.integers(60, 141)) for name in fleet.replica_names}
    return found


def random_action(
    simulation: Simulation, in_force: Mapping[str, Mapping[str, Value]], running: float, rng: np.random.Generator
) -> Action:
    """A random change of a restart-free setting from the values in force; it differs from them.

    Args:
        running: requests in an engine, from which limits are drawn that are far too small to more than enough.
    """
    while True:
        setting = SETTINGS[rng.integers(len(SETTINGS))]
        if setting.setting_class is SettingClass.C:
            continue
        target = _target(setting, simulation.fleet, rng)
        place = simulation.fleet.replica_names[0] if target not in in_force[setting.name] else target
        before = in_force[setting.name][place]
        after = _value(setting, before, running, rng)
        if after != before and setting.problem_with(after) is None:
            return _action(setting, target, before, after)


def _target(setting: Setting, fleet: FleetSpec, rng: np.random.Generator) -> str:
    one = fleet.replica_names[rng.integers(fleet.replicas)]
    if setting.scope is Scope.POOL:
        return FLEET
    single = setting.name in ("routing_weight", "replica_state") or rng.random() < 0.3
    return one if single else FLEET


def _value(setting: Setting, before: Value, running: float, rng: np.random.Generator) -> Value:
    """A choice, or a number that reaches from far too little to more than is needed."""
    if setting.choices:
        return setting.choices[rng.integers(len(setting.choices))]
    needed = max(4.0, running)
    ranges: dict[str, tuple[float, float]] = {
        "routing_weight": (20.0, 250.0),
        "replica_concurrency_cap": (0.4 * needed, 3 * needed),
        "queue_limit_requests": (1.0, 100.0),
        "deadline_shedding_ratio": (0.2, 3.0),
        "batch_in_flight_cap": (1.0, 50.0),
        "running_request_cap": (0.3 * needed, 3 * needed),
        "tokens_per_step": (256.0, 16384.0),
        "long_prefill_threshold_tokens": (128.0, 4096.0),
        "usable_kv_blocks_ratio": (0.1, 1.0),
    }
    low, high = ranges[setting.name]
    value = float(np.exp(rng.uniform(np.log(low), np.log(high))))
    return float(round(value)) if setting.integral else round(value, 2)


def _action(setting: Setting, target: str, before: Value, after: Value) -> Action:
    return Action(
        setting=setting.name,
        target=target,
        before=before,
        after=after,
        cause="what_if",
        layer=Layer(setting.layer),
        reason="a case of the benchmark",
    )


def places_of(action: Action, fleet: FleetSpec) -> Iterator[str]:
    """Where the action writes: every replica for a per-replica setting of the fleet."""
    everywhere = action.target == FLEET and setting_named(action.setting).scope is Scope.REPLICA
    yield from fleet.replica_names if everywhere else (action.target,)


def written(simulation: Simulation, action: Action) -> Simulation:
    """A copy of the hidden stack in which the change is made; a dead replica takes none."""
    changed = simulation.fork()
    for place in places_of(action, simulation.fleet):
        try:
            changed.write(action.setting, place, action.after)
        except StackError:
            continue
    return changed
