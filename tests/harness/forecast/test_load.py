import numpy as np
import pytest
from watching import RATE_PER_S, snapshots

from harness.forecast.load import load_of
from harness.forecast.prefixes import prefixes_of
from harness.forecast.starving import Kind, starving_in
from stack.simulator.fleet import FleetSpec
from stack.simulator.load.generated import ramp, steady, with_shared_prefixes
from stack.simulator.load.traffic import merged, plain
from stack.simulator.simulation import Simulation
from stack.simulator.stack import SimulatedStack
from stack.snapshot import FLEET, Snapshot


def test_load_is_what_arrived_not_what_was_finished(slow_fleet):
    _, snapshot = slow_fleet
    load = load_of([snapshot])
    assert load.arrivals_per_s == pytest.approx(RATE_PER_S, rel=0.1)
    assert load.prompt.mean_tokens == pytest.approx(1230, rel=0.15)
    assert load.prefixes is None


def test_a_rate_that_changes_is_less_sure_and_the_newest_window_counts_most():
    calm = load_of(list(snapshots(Simulation(FleetSpec(), steady(20.0, 500, seed=2)), 8)))
    moving = load_of(list(snapshots(Simulation(FleetSpec(), ramp(5.0, 60.0, 960, seed=2)), 8)))
    assert calm.rate_spread < 0.1 < moving.rate_spread
    assert moving.arrivals_per_s > 40.0


def test_bursts_are_told_from_poisson_arrivals():
    rng = np.random.default_rng(3)
    times = np.cumsum(rng.gamma(0.2, 1 / (20.0 * 0.2), 12_000))
    bursty = plain(times, np.full(len(times), 500), np.full(len(times), 50))
    calm = load_of(list(snapshots(Simulation(FleetSpec(), steady(20.0, 500, seed=2)), 8)))
    wild = load_of(list(snapshots(Simulation(FleetSpec(), bursty), 8)))
    assert calm.burstiness < 1.6 < 2.0 < wild.burstiness


def test_windows_of_different_lengths_are_no_burst():
    """A session's first snapshots cover less than a whole window."""
    stack = SimulatedStack(Simulation(FleetSpec(), steady(40.0, 600, seed=3)))
    seen = []
    for seconds in (15.0, *[60.0] * 6):
        stack.advance(seconds)
        seen.append(stack.reader.snapshot(60.0))
    load = load_of(seen)
    assert seen[0].window_s < 20 and load.burstiness < 1.5
    assert load.arrivals_per_s == pytest.approx(40.0, rel=0.1)


def test_shared_prefixes_are_found_and_played_back():
    traffic = with_shared_prefixes(steady(20.0, 300, seed=4), prefixes=12, chunks=2, seed=4)
    *_, snapshot = snapshots(Simulation(FleetSpec(), traffic), 4)
    found = prefixes_of(snapshot, 2250.0)
    assert (found.chunks, found.known) == (2, True)
    assert 8 <= found.count <= 20 and found.share > 0.8
    played = found.attached(plain(np.arange(500.0), np.full(500, 2000), np.full(500, 10)), seed=1)
    assert (played.chain_length > 0).mean() == pytest.approx(found.share, abs=0.06)
    assert played.prompt_tokens.mean() == pytest.approx(2000, rel=0.05)


def test_without_reuse_nothing_is_shared(slow_fleet):
    _, snapshot = slow_fleet
    assert prefixes_of(snapshot, 1000.0) is None


def test_batch_work_held_back_at_the_gateway_is_recognised():
    n = 600
    batch = plain(np.full(n, 60.0), np.full(n, 4000), np.full(n, 200), is_batch=True)
    simulation = Simulation(
        FleetSpec(replicas=2),
        merged(steady(10.0, 300, seed=6), batch),
        settings={"batch_in_flight_cap": {FLEET: 8.0}},
    )
    *_, snapshot = snapshots(simulation, 2)
    found = starving_in(snapshot)
    assert (found.batch_at_gateway, found.batch_cap) == (True, 8)


def test_long_prompts_left_behind_are_recognised_by_a_queue_that_most_pass():
    held = {"priority_policy": {FLEET: "short_first"}, "running_request_cap": {"replica-0": 10.0, "replica-1": 10.0}}
    simulation = Simulation(FleetSpec(replicas=2), steady(16.0, 500, seed=6), settings=held)
    *_, snapshot = snapshots(simulation, 6)
    found = starving_in(snapshot)
    assert found.in_engines is Kind.LONG and found.share > 0


def test_an_ordinary_queue_starves_nobody(slow_fleet):
    _, snapshot = slow_fleet
    assert starving_in(snapshot).in_engines is Kind.NONE
    assert starving_in(Snapshot(0.0, 60.0, 2, {}, {})).share == 0
