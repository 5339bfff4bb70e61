"""Playing a change through in the simulator, under a belief about the stack and its load."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harness.forecast.load import Load
from harness.objective import Slo
from stack.catalogue import setting_named
from stack.reading import Gauge
from stack.setting import Scope, SettingClass, Value
from stack.simulator.fleet import FleetSpec
from stack.simulator.load.generated import with_shared_prefixes
from stack.simulator.load.traffic import CHUNK_TOKENS, Traffic, plain
from stack.simulator.outcomes import Outcomes, Status
from stack.simulator.simulation import Simulation
from stack.snapshot import FLEET

Held = Mapping[str, Mapping[str, Value]]
"""Value in force per setting and target."""

WARM_UP_S = 40.0
"""Time for batches to fill before anything is measured."""
PLACING_S = 1e-3
"""Time in which one replica's backlog is put there."""
DRAIN_S = 30.0
"""Time after the last arrival in which started requests may still finish."""
BATCH_LIMIT_S = 240.0
PENDING = (Status.AT_GATEWAY, Status.WAITING, Status.RUNNING)
Figures = Mapping[str, float]


@dataclass(frozen=True)
class Belief:
    """What is believed of the stack: its fleet, the settings in force, the load and the backlog.

    Attributes:
        step_scale: slowness of each replica against the step-time tables.
        backlog: requests waiting on each replica now; they are put there when the horizon begins.
    """

    fleet: FleetSpec
    step_scale: tuple[float, ...]
    held: Held
    load: Load
    slo: Slo
    backlog: tuple[int, ...] = ()


@dataclass(frozen=True)
class Change:
    """What is tried."""

    setting: str
    target: str
    value: Value


def rehearse(belief: Belief, change: Change, *, horizon_s: float, seed: int) -> tuple[Figures, Figures]:
    """Figures over the horizon without and with the change, on the same arrivals."""
    traffic = traffic_of(belief, WARM_UP_S + horizon_s, seed)
    as_is = started(belief, traffic, seed)
    as_is.advance(WARM_UP_S)
    _place_backlog(as_is, belief)
    changed = as_is.fork()
    for target in _targets(change, belief):
        changed.write(change.setting, target, change.value)
    end_s = WARM_UP_S + horizon_s
    return _figures(as_is, belief, end_s), _figures(changed, belief, end_s)


def _place_backlog(simulation: Simulation, belief: Belief) -> None:
    """Let each replica's backlog arrive while no other replica takes requests."""
    weights = {name: simulation.read("routing_weight", name) for name in belief.fleet.replica_names}
    for index, count in enumerate(belief.backlog):
        if count == 0:
            continue
        for other, name in enumerate(weights):
            simulation.write("routing_weight", name, weights[name] or 1.0 if other == index else 0.0)
        simulation.advance(WARM_UP_S + (index + 1) * PLACING_S)
    for name, weight in weights.items():
        simulation.write("routing_weight", name, weight)
    simulation.advance(WARM_UP_S + len(weights) * PLACING_S)


def _targets(change: Change, belief: Belief) -> tuple[str, ...]:
    """A per-replica setting of the fleet is written to every replica, as execution does."""
    if change.target == FLEET and setting_named(change.setting).scope is Scope.REPLICA:
        return belief.fleet.replica_names
    return (change.target,)


def started(belief: Belief, traffic: Traffic, seed: int) -> Simulation:
    """A simulation with the believed settings in force."""
    held = {
        name: values for name, values in belief.held.items() if setting_named(name).setting_class is not SettingClass.C
    }
    return Simulation(belief.fleet, traffic, seed=seed, step_scale=belief.step_scale, settings=held)


def traffic_of(belief: Belief, duration_s: float, seed: int) -> Traffic:
    """Arrivals as the load shows them: gamma gaps for bursts, lengths as seen, shared prefixes for the hit ratio."""
    load, rng = belief.load, np.random.default_rng(seed)
    n = int(load.arrivals_per_s * duration_s * 1.3) + 20
    shape = 1.0 / max(1.0, load.burstiness)
    times = np.cumsum(rng.gamma(shape, 1.0 / (load.arrivals_per_s * shape), n))
    times = times[times < duration_s]
    placed = [np.full(count, WARM_UP_S + (index + 0.5) * PLACING_S) for index, count in enumerate(belief.backlog)]
    times = np.concatenate([times, *placed])
    prompt, output = load.prompt.draw(len(times), rng), load.output.draw(len(times), rng)
    chunks = int(load.hit_ratio * load.prompt.mean_tokens / CHUNK_TOKENS)
    if chunks == 0:
        return plain(times, prompt, output)
    own = np.maximum(1, prompt - chunks * CHUNK_TOKENS)
    return with_shared_prefixes(plain(times, own, output), prefixes=16, chunks=chunks, seed=seed)


def _figures(simulation: Simulation, belief: Belief, end_s: float) -> Figures:
    kv_usage: list[float] = []
    step_s = (end_s - WARM_UP_S) / 10
    for step in range(1, 11):
        simulation.advance(WARM_UP_S + step * step_s)
        kv_usage.append(_kv_usage(simulation))
    begin_s = WARM_UP_S + belief.fleet.replicas * PLACING_S
    finished_per_s = _finished(simulation.outcomes(), begin_s) / (end_s - begin_s)
    simulation.advance(end_s + DRAIN_S)
    figures = {**_scored(simulation.outcomes(), belief.slo, begin_s, end_s + DRAIN_S), "finished_per_s": finished_per_s}
    return {**figures, "kv_usage_p95_ratio": float(np.quantile(kv_usage, 0.95))}


def _finished(outcomes: Outcomes, since_s: float) -> int:
    """Requests that came to their end since then, those that had waited before included."""
    return int((outcomes.arrival_s + outcomes.e2e_s >= since_s).sum())


def _scored(outcomes: Outcomes, slo: Slo, begin_s: float, now_s: float) -> dict[str, float]:
    judged = outcomes.arrival_s >= begin_s
    good = outcomes.good(slo, BATCH_LIMIT_S)[judged]
    figures = {"slo_share": float(good.mean()) if len(good) else 1.0}
    for name, values, share in (
        ("ttft_p99_s", outcomes.ttft_s, 0.99),
        ("e2e_p99_s", outcomes.e2e_s, 0.99),
        ("e2e_p50_s", outcomes.e2e_s, 0.5),
    ):
        seen = _so_far(outcomes, values, now_s)[judged]
        seen = seen[np.isfinite(seen)]
        if len(seen):
            figures[name] = float(np.quantile(seen, share))
    seen = outcomes.itl_s[judged & np.isfinite(outcomes.itl_s)]
    if len(seen):
        figures["itl_mean_s"] = float(seen.mean())
    return figures


def _so_far(outcomes: Outcomes, values: NDArray[np.float64], now_s: float) -> NDArray[np.float64]:
    """Times with those that still run counted as long as they have run; without them the worst would look best."""
    pending = np.isin(outcomes.status, PENDING)
    return np.where(pending & np.isnan(values), now_s - outcomes.arrival_s, values)


def _kv_usage(simulation: Simulation) -> float:
    return max((reading.gauges.get(Gauge.KV_USAGE_RATIO, 0.0) for reading in simulation.readings()), default=0.0)
