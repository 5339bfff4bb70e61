"""The same run gives the same figures: again, forked, and with or without numba."""

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from invariants import world_of
from random_runs import Run, runs

from stack.errors import UnreachableError
from stack.simulator.engine.kernels import available
from stack.simulator.simulation import Simulation

SAMPLE = Run(traffic_seed=7, requests=150, faults=(), changes=((3.0, "routing_policy", "fleet", "prefix_aware"),))


def play(run: Run, *, compiled: bool | None) -> Simulation:
    simulation = run.simulation(compiled=compiled)
    for wait_s, name, target, value in run.changes:
        simulation.advance(simulation.now_s + wait_s)
        with suppress(UnreachableError):
            simulation.write(name, target, value)
    simulation.advance(simulation.now_s + 12.0)
    return simulation


def assert_same(one: Simulation, other: Simulation) -> None:
    for name, array in world_of(one)._asdict().items():
        assert np.array_equal(array, getattr(world_of(other), name), equal_nan=array.dtype.kind == "f"), name


@pytest.mark.skipif(not available(), reason="numba is not installed")
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(runs)
def test_compiled_and_plain_kernels_agree_exactly(run: Run):
    assert_same(play(run, compiled=True), play(run, compiled=False))


def test_same_arguments_same_figures():
    assert_same(play(SAMPLE, compiled=None), play(SAMPLE, compiled=None))


def test_fork_continues_alike_and_apart():
    simulation = play(SAMPLE, compiled=None)
    fork = simulation.fork()
    simulation.advance(40.0)
    assert fork.now_s < 40.0
    fork.advance(40.0)
    assert_same(simulation, fork)
    fork.write("routing_weight", "replica-0", 0.0)
    assert simulation.read("routing_weight", "replica-0") == 100.0
    assert fork.read("routing_weight", "replica-0") == 0.0


def test_time_never_goes_back():
    simulation = play(SAMPLE, compiled=None)
    now_s = simulation.now_s
    simulation.advance(now_s - 1.0)
    assert simulation.now_s == now_s
