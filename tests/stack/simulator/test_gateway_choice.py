"""Which replica the gateway chooses."""

from dataclasses import replace

import numpy as np
import pytest

from stack.setting import Value
from stack.simulator.fleet import FleetSpec
from stack.simulator.load.generated import steady, with_shared_prefixes
from stack.simulator.load.traffic import Traffic, merged, plain
from stack.simulator.outcomes import Status
from stack.simulator.simulation import Simulation
from stack.snapshot import FLEET

FLEET_SPEC = FleetSpec(replicas=4)
NAMES = FLEET_SPEC.replica_names


def shares(simulation: Simulation, traffic: Traffic) -> np.ndarray:
    simulation.advance(traffic.duration_s + 30.0)
    replica = simulation.outcomes().replica
    return np.bincount(replica[replica >= 0], minlength=4) / len(traffic)


def run(traffic: Traffic, settings: dict[str, dict[str, Value]], **more: object) -> Simulation:
    return Simulation(FLEET_SPEC, traffic, settings=settings, **more)


def test_round_robin_follows_the_weights():
    traffic = steady(20, 60, seed=1)
    weights = dict(zip(NAMES, (100.0, 100.0, 50.0, 0.0), strict=True))
    assert shares(run(traffic, {"routing_weight": weights}), traffic) == pytest.approx([0.4, 0.4, 0.2, 0.0], abs=0.01)


def test_a_drained_replica_gets_nothing_new():
    traffic = steady(20, 60, seed=1)
    assert shares(run(traffic, {"replica_state": {NAMES[2]: "drain"}}), traffic)[2] == 0.0


@pytest.mark.parametrize("policy", ["least_connections", "least_outstanding_tokens"])
def test_balancing_policies_spare_a_slow_replica(policy: str):
    traffic = steady(45, 120, seed=1)
    simulation = run(traffic, {"routing_policy": {FLEET: policy}}, step_scale=(1, 1, 3, 1))
    got = shares(simulation, traffic)
    assert got[2] < 0.8 * got[[0, 1, 3]].mean()


def test_a_session_stays_on_its_replica():
    traffic = with_shared_prefixes(steady(10, 60, seed=1), prefixes=40, chunks=2, seed=2, skew=0.0)
    simulation = run(traffic, {"routing_policy": {FLEET: "session_hash"}})
    shares(simulation, traffic)
    counts = np.zeros((40, 4))
    np.add.at(counts, (traffic.session, simulation.outcomes().replica), 1)
    assert counts.max(axis=1).sum() > 0.85 * len(traffic)
    assert set(counts.argmax(axis=1)) == {0, 1, 2, 3}


def test_bounded_load_spreads_a_dominant_session():
    traffic = replace(steady(60, 60, seed=1), session=np.zeros(len(steady(60, 60, seed=1)), dtype=np.int64))
    assert shares(run(traffic, {"routing_policy": {FLEET: "session_hash"}}), traffic).max() < 0.6


def test_prefix_aware_routing_raises_the_hit_ratio():
    traffic = with_shared_prefixes(steady(16, 120, seed=1), prefixes=400, chunks=8, seed=2, skew=0.3)
    hits = {}
    for policy in ("round_robin", "prefix_aware"):
        simulation = run(traffic, {"routing_policy": {FLEET: policy}})
        simulation.advance(150.0)
        hits[policy] = sum(one.counters.get("prefix_hit_tokens", 0.0) for one in simulation.readings())
    assert hits["prefix_aware"] > 1.3 * hits["round_robin"]


def test_a_cap_keeps_the_queue_at_the_gateway():
    traffic = steady(40, 30, seed=1)
    simulation = run(traffic, {"replica_concurrency_cap": dict.fromkeys(NAMES, 3.0)})
    for _ in range(20):
        simulation.advance(simulation.now_s + 1.0)
        assert (simulation._world.replica[:, 5] <= 3).all()
    assert (simulation.outcomes().status == Status.AT_GATEWAY).any()


def test_batch_cap_holds_batch_requests_back_and_nobody_else():
    batch = plain(np.full(200, 5.0), np.full(200, 2_000), np.full(200, 200), is_batch=True)
    traffic = merged(steady(10, 30, seed=1), batch)
    simulation = run(traffic, {"batch_in_flight_cap": {FLEET: 2.0}})
    for _ in range(15):
        simulation.advance(simulation.now_s + 2.0)
        assert (simulation._world.replica[:, 6] <= 2).all()
    outcomes = simulation.outcomes()
    assert (outcomes.status[outcomes.is_batch] == Status.AT_GATEWAY).any()
    assert not (outcomes.status[~outcomes.is_batch] == Status.AT_GATEWAY).any()


@pytest.mark.parametrize(
    ("policy", "short_first", "interactive_first"),
    [("fcfs", False, False), ("class", False, True), ("short_first", True, False), ("class_short_first", True, True)],
)
def test_priority_orders_the_queue(policy: str, short_first: bool, interactive_first: bool):
    rng = np.random.default_rng(0)
    n = 400
    traffic = replace(
        plain(np.linspace(0, 1, n), np.where(rng.random(n) < 0.5, 300, 4_000), np.full(n, 100)),
        is_batch=rng.random(n) < 0.5,
    )
    settings = {"priority_policy": {FLEET: policy}, "running_request_cap": dict.fromkeys(NAMES, 8.0)}
    simulation = run(traffic, settings)
    simulation.advance(600.0)
    outcomes = simulation.outcomes()
    wait = outcomes.ttft_s

    def clearly_sooner(first: np.ndarray, second: np.ndarray) -> bool:
        return bool(np.mean(wait[first]) < 0.75 * np.mean(wait[second]))

    short, interactive = outcomes.prompt_tokens == 300, ~outcomes.is_batch
    assert clearly_sooner(short & interactive, ~short & interactive) == short_first
    assert clearly_sooner(interactive, ~interactive) == interactive_first


def test_queue_limit_refuses_above_it():
    traffic = steady(200, 20, seed=1)
    open_run, limited = run(traffic, {}), run(traffic, {"queue_limit_requests": {FLEET: 5.0}})
    for simulation in (open_run, limited):
        simulation.advance(200.0)
    assert not (open_run.outcomes().status == Status.SHED).any()
    assert (limited.outcomes().status == Status.SHED).any()
    assert np.nanmax(limited.outcomes().ttft_s) < np.nanmax(open_run.outcomes().ttft_s)


def test_deadline_shedding_bounds_the_wait_of_those_served():
    traffic = steady(200, 20, seed=1)
    simulation = run(traffic, {"deadline_shedding_ratio": {FLEET: 0.5}})
    simulation.advance(200.0)
    outcomes = simulation.outcomes()
    assert (outcomes.status == Status.SHED).any()
    assert np.nanmax(outcomes.ttft_s) < 2.5


def test_frozen_metrics_leave_the_gateway_with_old_beliefs():
    traffic = steady(20, 60, seed=1)
    simulation = run(traffic, {"routing_policy": {FLEET: "least_outstanding_tokens"}})
    simulation._world.constant[14] = 1.0
    simulation.advance(30.0)
    assert simulation._world.cursor[3] == 0
    assert simulation._world.belief[:, 1].min() > simulation._world.replica[:, 7].max()
