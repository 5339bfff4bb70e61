"""Nothing is lost, doubled or leaked, whatever settings and faults come along."""

from contextlib import suppress

import invariants
from hypothesis import HealthCheck, given, settings
from random_runs import FLEET_SPEC, Run, runs

from stack.errors import UnreachableError
from stack.simulator.simulation import Simulation
from stack.snapshot import FLEET


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(runs)
def test_nothing_is_lost_or_leaked_under_any_changes(run: Run):
    simulation = run.simulation()
    for wait_s, name, target, value in run.changes:
        simulation.advance(simulation.now_s + wait_s)
        with suppress(UnreachableError):
            simulation.write(name, target, value)
        invariants.check(simulation)
    simulation.advance(simulation.now_s + 5.0)
    invariants.check(simulation)
    open_the_gates(simulation)
    simulation.advance(3_000.0)
    if any(fault.name == "lost_replica" for fault in run.faults):
        invariants.check(simulation)
    else:
        invariants.check_drained(simulation)


def open_the_gates(simulation: Simulation) -> None:
    """Settings under which everything waiting can be served."""
    simulation.write("batch_in_flight_cap", FLEET, 100.0)
    for name in FLEET_SPEC.replica_names:
        simulation.write("routing_weight", name, 100.0)
        simulation.write("replica_state", name, "ready")
        simulation.write("replica_concurrency_cap", name, 100.0)


def test_preemption_and_rejection_happen_in_these_runs():
    simulation = Run(traffic_seed=1, requests=160, faults=(), changes=()).simulation()
    for name in FLEET_SPEC.replica_names:
        simulation.write("usable_kv_blocks_ratio", name, 0.3)
    simulation.advance(1_000.0)
    invariants.check_drained(simulation)
    world = invariants.world_of(simulation)
    assert world.counter[:3, invariants.layout.C_PREEMPTIONS].sum() > 0
    assert (world.request[:, invariants.layout.STATUS] == invariants.layout.REJECTED).any()
