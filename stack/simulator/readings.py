"""The world as metrics tell it: per replica what its engine and the gateway say, and the gateway as a whole."""

import math
from collections.abc import Iterator

import numpy as np

from stack.catalogue import UNLIMITED
from stack.reading import GATEWAY, Counter, Distribution, Gauge, Histogram, Reading, View
from stack.setting import Value
from stack.simulator.engine import layout
from stack.simulator.engine.layout import World
from stack.simulator.fleet import FleetSpec
from stack.simulator.hardware.gpu import BLOCK_TOKENS, GPUS, MEMORY_UTILIZATION_RATIO
from stack.simulator.world import BUCKETS

MOST_PREFIXES = 5
"""How many of the most reused prefixes a reading names."""
USUAL_FRAGMENTATION_RATIO = 0.02

_COUNTERS = {
    Counter.PREEMPTIONS: layout.C_PREEMPTIONS,
    Counter.PROMPT_TOKENS: layout.C_PROMPT,
    Counter.GENERATION_TOKENS: layout.C_GENERATION,
    Counter.PREFIX_QUERIED_TOKENS: layout.C_QUERIED,
    Counter.PREFIX_HIT_TOKENS: layout.C_HIT,
    Counter.FINISHED: layout.C_FINISHED,
    Counter.ABORTED: layout.C_ABORTED,
}
_GATEWAY_COUNTERS = {
    Counter.ARRIVED: layout.C_ARRIVED,
    Counter.SHED: layout.C_SHED,
    Counter.ERRORS: layout.C_ERRORS,
    Counter.FINISHED: layout.C_FINISHED,
}
_GATEWAY_DISTRIBUTIONS = (Distribution.TTFT_S, Distribution.E2E_S)
_ROWS = {distribution: row for row, distribution in enumerate(BUCKETS)}


def engine_reading(world: World, fleet: FleetSpec, r: int, time_s: float, fragmentation: float) -> Reading:
    """What one engine says of itself."""
    replica = world.replica[r]
    return Reading(
        replica=fleet.replica_names[r],
        time_s=time_s,
        gauges={
            Gauge.RUNNING: float(replica[layout.N_RUNNING]),
            Gauge.WAITING: float(replica[layout.N_WAITING]),
            Gauge.KV_USAGE_RATIO: kv_usage_ratio(world, r),
            **_memory(fleet, fragmentation),
        },
        counters={counter: float(world.counter[r, column]) for counter, column in _COUNTERS.items()},
        histograms={distribution: _histogram(world, r, distribution) for distribution in BUCKETS},
        configuration={
            "model_name": fleet.repository,
            "num_gpu_blocks": float(replica[layout.TOTAL_BLOCKS]),
            "block_size": float(BLOCK_TOKENS),
            "enable_prefix_caching": "True",
            **_hardware(fleet),
        },
        prefixes=_prefixes(world, r),
    )


def _memory(fleet: FleetSpec, fragmentation: float) -> dict[Gauge, float]:
    """The device's memory; nothing is known of a device whose step times were measured."""
    if fleet.measured is not None:
        return {}
    total_bytes = GPUS[fleet.gpu].memory_bytes * fleet.tensor_parallel
    return {
        Gauge.DEVICE_TOTAL_BYTES: total_bytes,
        Gauge.DEVICE_FREE_BYTES: total_bytes * (1 - MEMORY_UTILIZATION_RATIO) * (1 - fragmentation),
        Gauge.FRAGMENTATION_RATIO: fragmentation,
    }


def _hardware(fleet: FleetSpec) -> dict[str, Value]:
    """What the engine runs on, or the step times that were measured."""
    if fleet.measured is not None:
        return fleet.measured.configuration(BLOCK_TOKENS)
    return {
        "gpu_memory_utilization": MEMORY_UTILIZATION_RATIO,
        "gpu": fleet.gpu,
        "gpu_count": float(fleet.tensor_parallel),
        "precision": fleet.precision,
        "engine": fleet.profile,
    }


def kv_usage_ratio(world: World, r: int) -> float:
    """Share of a replica's usable KV blocks that requests hold."""
    usable = max(1, int(world.replica[r, layout.USABLE_BLOCKS]))
    return min(1.0, 1.0 - float(world.replica[r, layout.FREE_BLOCKS]) / usable)


def server_reading(world: World, fleet: FleetSpec, r: int, time_s: float) -> Reading:
    """What the gateway says of one replica."""
    phase, cap = int(world.replica[r, layout.PHASE]), float(world.replica_setting[r, layout.CONCURRENCY_CAP])
    draining = phase == layout.DRAINING or world.replica_setting[r, layout.DRAINED] > 0
    down = phase in (layout.RESTARTING, layout.DOWN)
    return Reading(
        replica=fleet.replica_names[r],
        time_s=time_s,
        gauges={
            Gauge.UP: 0.0 if down else 1.0,
            Gauge.GATEWAY_SESSIONS: float(world.replica[r, layout.IN_FLIGHT]),
            Gauge.GATEWAY_WEIGHT: float(world.replica_setting[r, layout.WEIGHT]),
            **({Gauge.GATEWAY_LIMIT: cap} if cap < UNLIMITED else {}),
        },
        configuration={"gateway_state": "DOWN" if down else "DRAIN" if draining else "UP"},
        view=View.GATEWAY,
    )


def gateway_reading(world: World, time_s: float) -> Reading:
    """What the gateway says of itself; its times are the clients', from arrival on."""
    row = world.replica.shape[0]
    return Reading(
        replica=GATEWAY,
        time_s=time_s,
        gauges={
            Gauge.GATEWAY_QUEUE: float(world.queue[row, :, layout.COUNT].sum()),
            Gauge.GATEWAY_SESSIONS: float(world.replica[:, layout.IN_FLIGHT].sum()),
        },
        counters={counter: float(world.counter[row, column]) for counter, column in _GATEWAY_COUNTERS.items()},
        histograms={distribution: _histogram(world, row, distribution) for distribution in _GATEWAY_DISTRIBUTIONS},
        view=View.GATEWAY,
    )


def spoiled(reading: Reading) -> Reading:
    """The same reading with NaN for every gauge and counter."""
    return Reading(
        replica=reading.replica,
        time_s=reading.time_s,
        gauges=dict.fromkeys(reading.gauges, math.nan),
        counters=dict.fromkeys(reading.counters, math.nan),
        configuration=reading.configuration,
    )


def _histogram(world: World, row: int, distribution: Distribution) -> Histogram:
    bounds, index = BUCKETS[distribution], _ROWS[distribution]
    cumulative = np.cumsum(world.bucket[row, index, : len(bounds) + 1])
    return Histogram((*bounds, math.inf), tuple(map(float, cumulative)), float(world.total[row, index]))


def _prefixes(world: World, r: int) -> tuple[tuple[str, int, int], ...]:
    """The most reused prefixes: (id of its first chunk, longest cached part in tokens, hits since start)."""
    return tuple(_most_reused(world, r))


def _most_reused(world: World, r: int) -> Iterator[tuple[str, int, int]]:
    hits = world.cache[r, :, layout.HITS]
    most = min(MOST_PREFIXES, len(hits))
    best = np.argpartition(hits, len(hits) - most)[len(hits) - most :]
    tokens = int(world.constant[layout.CHUNK_TOKENS])
    for chunk in sorted(best, key=lambda one: (-int(hits[one]), int(one))):
        if hits[chunk] > 0:
            yield f"chunk-{chunk}", int(world.cache[r, chunk, layout.DEPTH]) * tokens, int(hits[chunk])
