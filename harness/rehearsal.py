"""Playing a change through in the simulator, under a belief about the stack and its load."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harness.load import Lengths, Load
from harness.objective import Slo
from stack.catalogue import setting_named
from stack.reading import Gauge
from stack.setting import SettingClass, Value
from stack.simulator.fleet import FleetSpec
from stack.simulator.generated import with_shared_prefixes
from stack.simulator.outcomes import Outcomes
from stack.simulator.simulation import Simulation
from stack.simulator.traffic import CHUNK_TOKENS, Traffic, plain

Held = Mapping[str, Mapping[str, Value]]
"""Value in force per setting and target."""

WARM_UP_S = 40.0
"""Time for batches to fill before anything is measured."""
DRAIN_S = 30.0
"""Time after the last arrival in which started requests may still finish."""
BATCH_LIMIT_S = 240.0
Figures = Mapping[str, float]


@dataclass(frozen=True)
class Belief:
    """What is believed of the stack: its fleet, the settings in force, the load and the backlog.

    Attributes:
        step_scale: slowness of each replica against the step-time tables.
        backlog: requests waiting now; they arrive at once when the horizon begins.
    """

    fleet: FleetSpec
    step_scale: tuple[float, ...]
    held: Held
    load: Load
    slo: Slo
    backlog: int = 0


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
    changed = as_is.fork()
    changed.write(change.setting, change.target, change.value)
    end_s = WARM_UP_S + horizon_s
    return _figures(as_is, belief, end_s), _figures(changed, belief, end_s)


def started(belief: Belief, traffic: Traffic, seed: int) -> Simulation:
    """A simulation with the believed settings in force."""
    held = {
        name: values for name, values in belief.held.items() if setting_named(name).setting_class is not SettingClass.C
    }
    return Simulation(belief.fleet, traffic, seed=seed, step_scale=belief.step_scale, settings=held)


def traffic_of(belief: Belief, duration_s: float, seed: int) -> Traffic:
    """Arrivals as the load shows them: gamma gaps for bursts, log-normal lengths, shared prefixes for the hit ratio."""
    load, rng = belief.load, np.random.default_rng(seed)
    n = int(load.arrivals_per_s * duration_s * 1.3) + 20
    shape = 1.0 / max(1.0, load.burstiness)
    times = np.cumsum(rng.gamma(shape, 1.0 / (load.arrivals_per_s * shape), n))
    times = times[times < duration_s]
    times = np.concatenate([times, np.full(belief.backlog, WARM_UP_S)])
    prompt, output = _drawn(load.prompt, len(times), rng), _drawn(load.output, len(times), rng)
    chunks = int(load.hit_ratio * load.prompt.mean_tokens / CHUNK_TOKENS)
    if chunks == 0:
        return plain(times, prompt, output)
    own = np.maximum(1, prompt - chunks * CHUNK_TOKENS)
    return with_shared_prefixes(plain(times, own, output), prefixes=16, chunks=chunks, seed=seed)


def _drawn(lengths: Lengths, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    drawn = rng.lognormal(lengths.mu, lengths.sigma, n)
    return np.clip(drawn, 1, 64 * max(1.0, lengths.mean_tokens)).astype(np.int64)


def _figures(simulation: Simulation, belief: Belief, end_s: float) -> Figures:
    kv_usage: list[float] = []
    step_s = (end_s - WARM_UP_S) / 10
    for step in range(1, 11):
        simulation.advance(WARM_UP_S + step * step_s)
        kv_usage.append(_kv_usage(simulation))
    simulation.advance(end_s + DRAIN_S)
    outcomes = simulation.outcomes()
    return {**_scored(outcomes, belief.slo), "kv_usage_p95_ratio": float(np.quantile(kv_usage, 0.95))}


def _scored(outcomes: Outcomes, slo: Slo) -> dict[str, float]:
    judged = outcomes.arrival_s >= WARM_UP_S
    good = outcomes.good(slo, BATCH_LIMIT_S)[judged]
    figures = {"slo_share": float(good.mean()) if len(good) else 1.0}
    for name, values, share in (
        ("ttft_p99_s", outcomes.ttft_s, 0.99),
        ("e2e_p99_s", outcomes.e2e_s, 0.99),
        ("e2e_p50_s", outcomes.e2e_s, 0.5),
    ):
        seen = values[judged & np.isfinite(values)]
        if len(seen):
            figures[name] = float(np.quantile(seen, share))
    seen = outcomes.itl_s[judged & np.isfinite(outcomes.itl_s)]
    if len(seen):
        figures["itl_mean_s"] = float(seen.mean())
    return figures


def _kv_usage(simulation: Simulation) -> float:
    return max((reading.gauges.get(Gauge.KV_USAGE_RATIO, 0.0) for reading in simulation.readings()), default=0.0)
