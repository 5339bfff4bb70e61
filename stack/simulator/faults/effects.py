"""What each fault does to the world when it begins."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from stack.catalogue import setting_named
from stack.simulator.engine import layout
from stack.simulator.engine.kernels import Kernels
from stack.simulator.engine.layout import World
from stack.simulator.faults.fault import Fault
from stack.simulator.faults.truth import Truth
from stack.simulator.fleet import FleetSpec
from stack.simulator.load.generated import poisson
from stack.simulator.load.traffic import Traffic, merged, plain
from stack.simulator.readings import engine_reading
from stack.simulator.switchboard import Switchboard
from stack.snapshot import FLEET

SLOWDOWN = 2.0
THROTTLING = 1.5
FRAGMENTATION_SLOWDOWN = 1.4
FRAGMENTATION_RATIO = 0.45
PINNED_SHARE = 0.35
NEEDED_SHARE = 0.25
"""How much of what the load needs a setting that is too small leaves."""
FLOOD_S = 300.0
LONG_PROMPT_TOKENS = 12_000
FLOOD_TOKENS_RATIO = 0.6
"""Prompt tokens of the flood per prompt token of the usual traffic."""


@dataclass(frozen=True)
class Site:
    """Where a fault strikes."""

    world: World
    fleet: FleetSpec
    switchboard: Switchboard
    kernels: Kernels
    truth: Truth
    replica: int
    now_s: float
    epoch_s: float

    @property
    def name(self) -> str:
        """Name of the replica it hits."""
        return self.fleet.replica_names[self.replica]


def _slow_replica(site: Site) -> None:
    site.world.real[site.replica, layout.HARDWARE_SCALE] *= SLOWDOWN


def _gpu_throttling(site: Site) -> None:
    site.world.real[:, layout.HARDWARE_SCALE] *= THROTTLING


def _lost_replica(site: Site) -> None:
    site.kernels.lose(site.world, site.replica, site.now_s)


def _hot_replica(site: Site) -> None:
    site.world.constant[layout.PIN_REPLICA] = site.replica
    site.world.constant[layout.PIN_SHARE] = PINNED_SHARE


def _weights_uneven(site: Site) -> None:
    for name in site.fleet.replica_names:
        site.switchboard.place("routing_weight", name, 240.0 if name == site.name else 40.0)


def _prefix_scatter(site: Site) -> None:
    site.switchboard.place("routing_policy", FLEET, "round_robin")


def _in_engine(site: Site) -> float:
    """Mean number of requests in an engine so far, by Little's law."""
    spent_s = float(site.world.total[: site.fleet.replicas, layout.H_E2E].sum())
    return spent_s / max(1.0, site.now_s) / site.fleet.replicas


def _cap_too_small(site: Site) -> None:
    """A share of the requests that the load keeps in an engine, at least 2."""
    cap = max(2.0, float(int(NEEDED_SHARE * _in_engine(site))))
    for name in site.fleet.replica_names:
        site.switchboard.place("running_request_cap", name, cap)


def _kv_pool_small(site: Site) -> None:
    """Blocks for a share of the requests that the load keeps in an engine, but for the longest request at least."""
    tokens = site.world.request[:, [layout.PROMPT, layout.OUTPUT]].sum(axis=1)
    needed = max(NEEDED_SHARE * _in_engine(site) * float(tokens.mean()), 1.05 * float(tokens.max()))
    ratio = needed / layout.BLOCK / site.fleet.blocks_per_replica
    low = setting_named("usable_kv_blocks_ratio").low or 0.0
    for name in site.fleet.replica_names:
        site.switchboard.place("usable_kv_blocks_ratio", name, min(1.0, max(low, round(ratio, 3))))


def _cap_too_big(site: Site) -> None:
    _kv_pool_small(site)
    for name in site.fleet.replica_names:
        site.switchboard.place("running_request_cap", name, 4096.0)


def _prompt_timestamp(site: Site) -> None:
    site.world.constant[layout.REUSE_LOST] = 1.0


def _fragmentation(site: Site) -> None:
    site.world.real[site.replica, layout.WORKER_SCALE] = FRAGMENTATION_SLOWDOWN
    site.truth.fragmented[site.replica] = int(site.world.replica[site.replica, layout.RESTARTS])


def _proxy_buffering(site: Site) -> None:
    site.world.constant[layout.BUFFERED] = 1.0


def _stale_metrics(site: Site) -> None:
    site.world.constant[layout.METRICS_FROZEN] = 1.0
    for r in range(site.fleet.replicas):
        site.truth.frozen[r] = engine_reading(site.world, site.fleet, r, site.epoch_s + site.now_s, 0.0)


def _missing_metrics(site: Site) -> None:
    site.truth.absent.add(site.replica)


def _nan_metrics(site: Site) -> None:
    site.truth.spoiled.add(site.replica)


def _in_traffic(site: Site) -> None:
    """Nothing left to do: the requests were added before the run."""


EFFECTS: dict[str, Callable[[Site], None]] = {
    "slow_replica": _slow_replica,
    "lost_replica": _lost_replica,
    "hot_replica": _hot_replica,
    "weights_uneven": _weights_uneven,
    "prefix_scatter": _prefix_scatter,
    "cap_too_small": _cap_too_small,
    "cap_too_big": _cap_too_big,
    "kv_pool_small": _kv_pool_small,
    "prompt_timestamp": _prompt_timestamp,
    "long_prompt_flood": _in_traffic,
    "batch_flood": _in_traffic,
    "fragmentation": _fragmentation,
    "gpu_throttling": _gpu_throttling,
    "proxy_buffering": _proxy_buffering,
    "stale_metrics": _stale_metrics,
    "missing_metrics": _missing_metrics,
    "nan_metrics": _nan_metrics,
}


def flooded(traffic: Traffic, fault: Fault, seed: int) -> Traffic:
    """The traffic with what a traffic fault adds; as it is for every other fault or without requests to measure by."""
    if fault.name not in ("long_prompt_flood", "batch_flood") or len(traffic) == 0:
        return traffic
    tokens_per_s = float(traffic.prompt_tokens.sum()) / max(1.0, traffic.duration_s)
    rng = np.random.default_rng(seed + 17)
    if fault.name == "long_prompt_flood":
        rate = FLOOD_TOKENS_RATIO * tokens_per_s / LONG_PROMPT_TOKENS
        extra = poisson(lambda t: np.full(len(t), rate), rate, FLOOD_S, seed=seed + 17)
        prompts = np.clip(rng.lognormal(np.log(LONG_PROMPT_TOKENS), 0.3, len(extra)), 4_000, 30_000).astype(np.int64)
        return merged(traffic, plain(extra.arrival_s + fault.at_s, prompts, extra.output_tokens))
    n = int(FLOOD_TOKENS_RATIO * tokens_per_s * FLOOD_S / 4_000)
    prompts = np.clip(rng.lognormal(np.log(4_000), 0.4, n), 500, 16_000).astype(np.int64)
    outputs = np.clip(rng.lognormal(np.log(300), 0.4, n), 20, 1_000).astype(np.int64)
    return merged(traffic, plain(fault.at_s + rng.uniform(0, 3, n), prompts, outputs, is_batch=True))
