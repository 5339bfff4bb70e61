"""Generated traffic, scaling and capacity."""

from dataclasses import replace

import numpy as np
import pytest

from stack.errors import InputError
from stack.simulator.capacity import GOOD_SHARE, PRECISION_RATIO, capacity_per_s, scaled, scaled_to_load
from stack.simulator.fleet import FleetSpec
from stack.simulator.load.generated import ramp, spike, steady, with_shared_prefixes
from stack.simulator.load.traffic import Traffic, merged, plain
from stack.simulator.simulation import Simulation

FLEET_SPEC = FleetSpec(replicas=2)


def counts(traffic: Traffic, width_s: float, duration_s: float) -> np.ndarray:
    return np.histogram(traffic.arrival_s, np.arange(0, duration_s + width_s, width_s))[0]


def test_seeds():
    one, again, other = steady(10, 100, seed=1), steady(10, 100, seed=1), steady(10, 100, seed=2)
    assert np.array_equal(one.arrival_s, again.arrival_s)
    assert np.array_equal(one.prompt_tokens, again.prompt_tokens)
    assert not np.array_equal(one.arrival_s[:50], other.arrival_s[:50])


def test_shapes():
    assert len(steady(50, 200, seed=1)) == pytest.approx(10_000, rel=0.05)
    low, middle, _ = counts(ramp(5, 50, 300, seed=1), 100, 300)
    assert middle > 1.5 * low
    spiked = counts(spike(10, 100, 600, seed=1), 5, 600)
    assert (spiked > 250).sum() in range(9, 21)
    assert np.median(spiked) == pytest.approx(50, rel=0.2)


def test_lengths_are_drawn_together():
    pattern = plain(np.arange(2.0), np.array([100, 9_000]), np.array([5, 700]))
    traffic = steady(10, 60, seed=1, lengths=pattern)
    pairs = set(zip(traffic.prompt_tokens.tolist(), traffic.output_tokens.tolist(), strict=True))
    assert pairs == {(100, 5), (9_000, 700)}


def test_traffic_is_checked_and_frozen():
    good = steady(5, 20, seed=1)
    with pytest.raises(InputError, match="ascending"):
        replace(good, arrival_s=good.arrival_s[::-1].copy())
    with pytest.raises(InputError, match="at least 1"):
        replace(good, prompt_tokens=good.prompt_tokens * 0)
    with pytest.raises(InputError, match="entries"):
        replace(good, session=good.session[:-1].copy())
    with pytest.raises(InputError, match="chain"):
        replace(good, chain_length=good.prompt_tokens)
    with pytest.raises(ValueError, match="read-only"):
        good.prompt_tokens[0] = 1


def test_merged_keeps_prefixes_and_sessions_apart():
    first = with_shared_prefixes(steady(5, 20, seed=1), prefixes=3, chunks=2, seed=1)
    second = with_shared_prefixes(steady(5, 20, seed=2), prefixes=3, chunks=2, seed=2)
    both = merged(first, second)
    assert len(both) == len(first) + len(second)
    assert both.chunks == first.chunks + second.chunks
    assert set(both.session) == set(range(6))
    for start, session in zip(both.chain_start, both.session, strict=True):
        assert both.chains[start] // 2 == session


@pytest.mark.parametrize("factor", [0.3, 1.0, 2.5])
def test_scaling_keeps_rate_and_burst_shape(factor: float):
    bursty = spike(2, 40, 1_000, seed=1, spikes=4)
    got = scaled(bursty, factor, seed=3)
    assert len(got) == pytest.approx(factor * len(bursty), rel=0.08)
    assert set(got.prompt_tokens) <= set(bursty.prompt_tokens)
    dispersion = counts(got, 10, 1_000).var() / counts(got, 10, 1_000).mean()
    assert dispersion > 20, "bursts are gone; independent arrivals would give 1"


def test_scaling_by_one_changes_nothing():
    traffic = steady(5, 60, seed=1)
    assert np.array_equal(scaled(traffic, 1.0).arrival_s, traffic.arrival_s)


def test_clones_have_prefixes_of_their_own():
    traffic = with_shared_prefixes(steady(5, 100, seed=1), prefixes=3, chunks=2, seed=1)
    got = scaled(traffic, 3.0, seed=1)
    assert set(got.session) == set(range(9))
    for start, session in zip(got.chain_start, got.session, strict=True):
        assert got.chains[start] // 2 == session


def test_capacity_is_the_border():
    lengths = steady(10, 100, seed=4)
    capacity = capacity_per_s(FLEET_SPEC, lengths)

    def share(rate: float) -> float:
        trial = steady(rate, 240.0, seed=9, lengths=lengths)
        settings = {"routing_policy": {"fleet": "least_outstanding_tokens"}}
        simulation = Simulation(FLEET_SPEC, trial, settings=settings)
        simulation.advance(300.0)
        return simulation.slo_share()

    assert share(0.9 * capacity) >= GOOD_SHARE
    assert share(1.15 * PRECISION_RATIO * capacity) < GOOD_SHARE
    assert capacity_per_s(FleetSpec(replicas=4), lengths) == pytest.approx(2 * capacity, rel=0.15)


def test_scaled_to_load():
    lengths = steady(10, 400, seed=4)
    got = scaled_to_load(lengths, 0.5, FLEET_SPEC, duration_s=200.0)
    assert len(got) / 200.0 == pytest.approx(0.5 * capacity_per_s(FLEET_SPEC, lengths), rel=0.1)
    assert got.duration_s <= 200.0


def test_later_than_its_end_there_is_nothing():
    assert len(steady(5, 20, seed=1).between(30.0, 40.0)) == 0
    assert len(steady(5, 20, seed=1).between(5.0, 10.0)) == pytest.approx(25, abs=15)
