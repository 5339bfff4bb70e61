"""Each fault shows where it should, and only there."""

import math

import numpy as np
import pytest

from stack.errors import InputError, UnreachableError
from stack.reading import GATEWAY, Distribution, Gauge, Reading, View
from stack.simulator.faults.effects import EFFECTS
from stack.simulator.faults.fault import FAULTS, Fault, Nature, parse_fault
from stack.simulator.fleet import FleetSpec
from stack.simulator.load.generated import steady, with_shared_prefixes
from stack.simulator.load.traffic import Traffic
from stack.simulator.outcomes import Status
from stack.simulator.simulation import Simulation

FLEET_SPEC = FleetSpec(replicas=3)
TRAFFIC = steady(30, 240, seed=3)
SETTING_FAULTS = [name for name, kind in FAULTS.items() if kind.nature is Nature.SETTING]


def run(fault: str | None, traffic: Traffic = TRAFFIC, until_s: float = 240.0, **more: object) -> Simulation:
    faults = [parse_fault(fault)] if fault else []
    simulation = Simulation(FLEET_SPEC, traffic, faults=faults, **more)
    simulation.advance(until_s)
    return simulation


def engine(simulation: Simulation, r: int) -> Reading:
    name = f"replica-{r}"
    return next(one for one in simulation.readings() if one.replica == name and one.view is View.ENGINE)


def test_every_fault_has_an_effect_and_runs():
    assert set(EFFECTS) == set(FAULTS)
    for name in FAULTS:
        assert run(f"{name}@20", until_s=60.0).now_s == 60.0


@pytest.mark.parametrize("name", SETTING_FAULTS)
def test_a_setting_fault_is_visible_in_the_settings(name: str):
    settings = {"routing_policy": {"fleet": "prefix_aware"}}
    before, after = run(None, settings=settings).settings(), run(f"{name}@120", settings=settings).settings()
    assert before != after


@pytest.mark.parametrize("name", [name for name in FAULTS if name not in SETTING_FAULTS])
def test_other_faults_leave_the_settings_alone(name: str):
    assert run(f"{name}@120").settings() == run(None).settings()


def test_a_fault_does_nothing_before_its_time():
    with_fault, without = run("slow_replica@200", until_s=199.0), run(None, until_s=199.0)
    assert np.array_equal(with_fault.outcomes().ttft_s, without.outcomes().ttft_s, equal_nan=True)


def test_slow_replica_doubles_its_token_times_only():
    simulation = run("slow_replica:1@0")
    means = [engine(simulation, r).histograms[Distribution.ITL_S] for r in range(3)]
    itl = [one.total / one.count for one in means]
    assert itl[1] > 1.9 * max(itl[0], itl[2])


def test_gpu_throttling_slows_all():
    slow, usual = run("gpu_throttling@0"), run(None)
    assert np.nanmedian(slow.outcomes().itl_s) > 1.4 * np.nanmedian(usual.outcomes().itl_s)


def test_lost_replica_is_down_and_does_not_answer():
    simulation = run("lost_replica:2@120")
    views = [one.view for one in simulation.readings() if one.replica == "replica-2"]
    assert views == [View.GATEWAY]
    server = next(one for one in simulation.readings() if one.replica == "replica-2")
    assert server.gauges[Gauge.UP] == 0.0
    with pytest.raises(UnreachableError, match="replica-2"):
        simulation.read("running_request_cap", "replica-2")
    assert (simulation.outcomes().status == Status.LOST).any()


def test_hot_replica_gets_far_more_than_its_share():
    replica = run("hot_replica:0@0").outcomes().replica
    assert (replica == 0).mean() > 0.5


def test_kv_pressure_preempts():
    traffic = steady(45, 240, seed=3)
    assert run(None, traffic).readings()[0].counters["preemptions"] == 0
    pressed = run("kv_pool_small@60", traffic)
    assert sum(one.counters.get("preemptions", 0) for one in pressed.readings()) > 0


def test_cap_too_small_makes_requests_wait_beside_free_memory():
    reading = engine(run("cap_too_small@120"), 0)
    assert reading.gauges[Gauge.WAITING] > 0
    assert reading.gauges[Gauge.KV_USAGE_RATIO] < 0.3


def test_prompt_timestamp_ends_prefix_reuse():
    traffic = with_shared_prefixes(steady(15, 240, seed=3), prefixes=10, chunks=4, seed=1)
    early, late = run("prompt_timestamp@120", traffic, until_s=120.0), run("prompt_timestamp@120", traffic)
    hits = [sum(one.counters.get("prefix_hit_tokens", 0.0) for one in s.readings()) for s in (early, late)]
    assert hits[0] > 0
    assert hits[1] == pytest.approx(hits[0], rel=0.02)


@pytest.mark.parametrize("name", ["long_prompt_flood", "batch_flood"])
def test_floods_add_requests(name: str):
    extra = len(run(f"{name}@60").traffic) - len(TRAFFIC)
    assert extra > 10
    assert run(f"{name}@60").traffic.is_batch.any() == (name == "batch_flood")


def test_a_restart_mends_a_fragmented_worker():
    simulation = run("fragmentation:1@30", until_s=60.0)
    assert engine(simulation, 1).gauges[Gauge.FRAGMENTATION_RATIO] > 0.3
    assert engine(simulation, 0).gauges[Gauge.FRAGMENTATION_RATIO] < 0.1
    simulation.write("worker_generation", "replica-1", 1.0)
    simulation.advance(240.0)
    assert engine(simulation, 1).gauges[Gauge.FRAGMENTATION_RATIO] < 0.1
    assert simulation._world.real[1, 5] == 1.0


def test_proxy_buffering_shows_at_the_client_not_at_the_engine():
    simulation = run("proxy_buffering@0")
    gateway = next(one for one in simulation.readings() if one.replica == GATEWAY)
    seen, told = gateway.histograms[Distribution.TTFT_S], engine(simulation, 0).histograms[Distribution.TTFT_S]
    assert seen.total / seen.count > 5 * told.total / told.count


def test_stale_metrics_stand_still():
    simulation = run("stale_metrics@60", until_s=100.0)
    first = engine(simulation, 0)
    simulation.advance(200.0)
    assert engine(simulation, 0) == first


def test_missing_and_nan_metrics():
    missing = {one.replica for one in run("missing_metrics:1@60").readings() if one.view is View.ENGINE}
    assert missing == {"replica-0", "replica-2"}
    assert all(math.isnan(value) for value in engine(run("nan_metrics:1@60"), 1).gauges.values())


def test_the_seed_chooses_the_replica():
    slow = {int(np.argmax(run("slow_replica@0", seed=s, until_s=5.0)._world.real[:, 4])) for s in range(12)}
    assert slow == {0, 1, 2}


def test_parse_fault():
    assert parse_fault("slow_replica@1500") == Fault("slow_replica", 1500.0)
    assert parse_fault("slow_replica:2@0.5") == Fault("slow_replica", 0.5, 2)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("slow_replcia@3", "known faults are batch_flood"),
        ("slow_replica", "has no time"),
        ("slow_replica@", "at least 0"),
        ("slow_replica@soon", "'soon'"),
        ("slow_replica@-1", "'-1'"),
        ("slow_replica@nan", "'nan'"),
        ("slow_replica:x@1", "index"),
    ],
)
def test_a_bad_fault_is_refused_in_one_line(text: str, says: str):
    with pytest.raises(InputError, match=says) as caught:
        parse_fault(text)
    assert "\n" not in str(caught.value)


def test_a_fault_on_a_replica_that_does_not_exist():
    with pytest.raises(InputError, match="no replica 3 among 3"):
        Simulation(FLEET_SPEC, TRAFFIC, faults=[parse_fault("slow_replica:3@5")])
