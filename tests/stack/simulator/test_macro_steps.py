"""Equal decode steps taken together give the times of single ones."""

import numpy as np
import pytest

from stack.simulator.fleet import FleetSpec
from stack.simulator.load.generated import steady, with_shared_prefixes
from stack.simulator.load.traffic import Traffic
from stack.simulator.simulation import Simulation
from stack.simulator.speed import standard_load

CHAT = with_shared_prefixes(steady(22, 200, seed=4), prefixes=20, chunks=2, seed=4)


def figures(traffic: Traffic, kv_blocks: int | None, *, macro_steps: bool) -> dict[str, float]:
    fleet = FleetSpec(replicas=2, kv_blocks=kv_blocks)
    simulation = Simulation(fleet, traffic, macro_steps=macro_steps)
    simulation.advance(traffic.duration_s + 300.0)
    outcomes = simulation.outcomes()
    assert np.isfinite(outcomes.e2e_s).all()
    times = {"ttft": outcomes.ttft_s, "itl": outcomes.itl_s, "e2e": outcomes.e2e_s}
    itl_s = [one.histograms["itl_s"] for one in simulation.readings()[:2]]
    return {
        **{f"{name} mean": float(np.nanmean(values)) for name, values in times.items()},
        **{f"{name} P50": float(np.nanquantile(values, 0.5)) for name, values in times.items()},
        "e2e P99": float(np.quantile(outcomes.e2e_s, 0.99)),
        "ITL as counted": sum(one.total for one in itl_s) / sum(one.count for one in itl_s),
        "preemptions": sum(one.counters["preemptions"] for one in simulation.readings()[:2]),
    }


@pytest.mark.parametrize(
    ("traffic", "kv_blocks"),
    [(standard_load(20, 300), None), (CHAT, None), (CHAT, 6_000)],
    ids=["light", "loaded", "short of KV blocks"],
)
def test_macro_steps_change_times_by_less_than_0_3_percent(traffic: Traffic, kv_blocks: int | None):
    together = figures(traffic, kv_blocks, macro_steps=True)
    single = figures(traffic, kv_blocks, macro_steps=False)
    assert (single["preemptions"] > 0) == (kv_blocks is not None)
    assert together == pytest.approx(single, rel=0.003)
