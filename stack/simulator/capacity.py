"""Load as a share of what the fleet can serve, and traffic scaled to it with its bursts kept."""

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stack.simulator.fleet import FleetSpec
from stack.simulator.load.generated import steady
from stack.simulator.load.traffic import PER_REQUEST, Traffic
from stack.simulator.outcomes import CommonLimits, Limits
from stack.simulator.simulation import Simulation
from stack.snapshot import FLEET

GOOD_SHARE = 0.95
"""A rate is within capacity when at least this share of the requests is inside the limits."""
TRIAL_S = 240.0
DRAIN_S = 60.0
PRECISION_RATIO = 1.04
CLONE_SHIFT_S = 150.0
"""Clones of a trace are shifted by up to this, so that their bursts do not fall together."""
JITTER_S = 1.5
NEIGHBOURS = 50
"""A cloned request takes its lengths from a request at most this many places away."""


def scaled_to_load(
    traffic: Traffic,
    load: float,
    fleet: FleetSpec,
    *,
    duration_s: float | None = None,
    seed: int = 0,
    limits: Limits | None = None,
) -> Traffic:
    """The first `duration_s` of the traffic at `load` times the fleet's capacity for its lengths."""
    rate = len(traffic) / max(1.0, traffic.duration_s)
    return scaled(traffic, load * capacity_per_s(fleet, traffic, limits) / rate, duration_s=duration_s, seed=seed)


def scaled(traffic: Traffic, factor: float, *, duration_s: float | None = None, seed: int = 0) -> Traffic:
    """`factor` times as many requests: thinned, or laid over clones of itself that are shifted in time.

    The first copy keeps its own times; a clone is shifted by up to 150 s, wraps round at the trace's end, and keeps
    sessions and prefixes of its own, so reuse within a copy stays as it was.
    """
    rng, whole_s = np.random.default_rng(seed), traffic.duration_s + 1e-9
    until_s = min(duration_s or whole_s, whole_s)
    parts = []
    for copy in range(int(np.ceil(factor))):
        keep = rng.random(len(traffic)) < factor - copy
        shift_s = float(rng.uniform(-CLONE_SHIFT_S, CLONE_SHIFT_S))
        index = np.flatnonzero(keep)
        times = traffic.arrival_s[index]
        if copy > 0:
            times = (times + shift_s + rng.uniform(-JITTER_S, JITTER_S, len(index))) % whole_s
            index = np.clip(index + rng.integers(-NEIGHBOURS, NEIGHBOURS + 1, len(index)), 0, len(traffic) - 1)
        inside = times < until_s
        parts.append(_copy(traffic, index[inside], times[inside], copy))
    return _joined(traffic, parts, int(np.ceil(factor)))


def capacity_per_s(fleet: FleetSpec, lengths: Traffic, limits: Limits | None = None) -> float:
    """The highest steady rate at which at least 95 % of requests of these lengths are inside the limits.

    Found by bisection to 4 % in the simulator itself, with the engines' settings at their defaults behind a gateway
    that balances by outstanding tokens. Prefix reuse is not counted.
    """
    limits = limits or CommonLimits()
    key = (limits.ttft_s, limits.ttft_s_per_prompt_token, limits.itl_s)
    mix = (lengths.prompt_tokens.tobytes(), lengths.output_tokens.tobytes())
    return _capacity(fleet, mix, key)


@lru_cache(maxsize=32)
def _capacity(fleet: FleetSpec, mix: tuple[bytes, bytes], key: tuple[float, float, float]) -> float:
    limits = CommonLimits(*key)
    prompts, outputs = (np.frombuffer(part, dtype=np.int64) for part in mix)
    low, high = 0.05 * fleet.replicas, 100.0 * fleet.replicas
    while high / low > PRECISION_RATIO:
        rate = float(np.sqrt(low * high))
        if _good_share(fleet, prompts, outputs, rate, limits) >= GOOD_SHARE:
            low = rate
        else:
            high = rate
    return low


def _good_share(
    fleet: FleetSpec, prompts: NDArray[np.int64], outputs: NDArray[np.int64], rate: float, limits: Limits
) -> float:
    duration_s = TRIAL_S if rate > 20 else 2 * TRIAL_S
    trial = steady(rate, duration_s, seed=5)
    index = np.random.default_rng(6).integers(len(prompts), size=len(trial))
    trial = replace(trial, prompt_tokens=prompts[index], output_tokens=outputs[index])
    simulation = Simulation(fleet, trial, settings={"routing_policy": {FLEET: "least_outstanding_tokens"}})
    simulation.advance(duration_s + DRAIN_S)
    share = simulation.slo_share(limits)
    return share if len(trial) else 1.0


def _copy(traffic: Traffic, index: NDArray[np.int64], times: NDArray[np.float64], copy: int) -> Traffic:
    order = np.argsort(times, kind="stable")
    chosen = traffic.take(index[order], times[order])
    sessions = int(traffic.session.max(initial=-1)) + 1
    return replace(
        chosen,
        session=np.where(chosen.session >= 0, chosen.session + copy * sessions, -1),
        chain_start=chosen.chain_start + copy * len(traffic.chains),
    )


def _joined(traffic: Traffic, parts: list[Traffic], copies: int) -> Traffic:
    chains = np.concatenate([traffic.chains + copy * traffic.chunks for copy in range(copies)])
    columns: dict[str, Any] = {name: np.concatenate([getattr(part, name) for part in parts]) for name in PER_REQUEST}
    order = np.argsort(columns["arrival_s"], kind="stable")
    return Traffic(**{name: values[order] for name, values in columns.items()}, chains=chains)
