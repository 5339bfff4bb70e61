"""Small random runs for property tests: crowded replicas, shared prefixes, and settings that change on the way."""

from dataclasses import dataclass, replace

import numpy as np
from hypothesis import strategies as st

from stack.catalogue import SETTINGS
from stack.setting import Scope, Setting, Value
from stack.simulator.faults.fault import FAULTS, Fault
from stack.simulator.fleet import FleetSpec
from stack.simulator.load.traffic import CHUNK_TOKENS, Traffic, plain
from stack.simulator.simulation import Simulation
from stack.snapshot import FLEET

FLEET_SPEC = FleetSpec(replicas=3, kv_blocks=320, restart_s=3.0)
"""320 blocks hold 5,120 tokens, so that a handful of requests fill a replica."""


@dataclass(frozen=True)
class Run:
    traffic_seed: int
    requests: int
    faults: tuple[Fault, ...]
    changes: tuple[tuple[float, str, str, Value], ...]

    def simulation(self, *, compiled: bool | None = None) -> Simulation:
        return Simulation(FLEET_SPEC, crowded(self.traffic_seed, self.requests), faults=self.faults, compiled=compiled)


def crowded(seed: int, n: int) -> Traffic:
    """About ten requests a second of up to 2,500 prompt tokens, a quarter batch, half with a shared prefix."""
    rng = np.random.default_rng(seed)
    traffic = plain(np.sort(rng.random(n)) * n / 10, rng.integers(1, 1_500, n), rng.integers(1, 120, n))
    chunks = np.where(rng.random(n) < 0.5, rng.integers(1, 3, n), 0)
    owner = rng.integers(0, 6, n)
    return replace(
        traffic,
        is_batch=rng.random(n) < 0.25,
        prompt_tokens=traffic.prompt_tokens + chunks * CHUNK_TOKENS,
        session=owner,
        chain_start=owner * 2,
        chain_length=chunks,
        chains=np.arange(12),
    )


def values(setting: Setting) -> st.SearchStrategy[Value]:
    if setting.choices:
        return st.sampled_from(setting.choices)
    low, high = setting.low or 0.0, min(setting.high or 0.0, 300.0)
    if setting.integral:
        return st.integers(int(low), int(max(low, high))).map(float)
    return st.floats(low, high)


@st.composite
def changes(draw: st.DrawFn) -> tuple[float, str, str, Value]:
    setting = draw(st.sampled_from(SETTINGS))
    target = FLEET if setting.scope is Scope.POOL else draw(st.sampled_from(FLEET_SPEC.replica_names))
    return draw(st.floats(0.0, 8.0)), setting.name, target, draw(values(setting))


faults = st.builds(
    Fault, st.sampled_from(sorted(set(FAULTS) - {"long_prompt_flood", "batch_flood"})), st.floats(0.0, 15.0)
)
runs = st.builds(
    Run,
    traffic_seed=st.integers(0, 10_000),
    requests=st.integers(1, 160),
    faults=st.lists(faults, max_size=2).map(tuple),
    changes=st.lists(changes(), max_size=6).map(tuple),
)
