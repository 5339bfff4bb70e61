import pytest
from watching import watched, weight

from harness.forecast.pull import pulls_of
from stack.simulator.faults.fault import parse_fault
from stack.simulator.fleet import FleetSpec
from stack.simulator.load.generated import steady
from stack.simulator.simulation import Simulation


@pytest.fixture(scope="module")
def pinned():
    return watched(Simulation(FleetSpec(), steady(30.0, 400, seed=3), faults=[parse_fault("hot_replica:1@100")]), 5)


def test_a_pull_is_seen_and_played_back(pinned):
    forecaster, snapshot = pinned
    belief = forecaster.belief(snapshot)
    assert belief.pull[1] == pytest.approx((0.35 + 0.65 / 4) * 4, rel=0.1)
    assert max(belief.pull[0], *belief.pull[2:]) < 0.8
    spared = forecaster.forecast(weight("replica-1"), snapshot).effects["e2e_p99_s"]
    burdened = forecaster.forecast(weight("replica-2"), snapshot).effects["e2e_p99_s"]
    assert spared.after < spared.before < burdened.after


def test_even_turns_are_no_pull(slow_fleet):
    _, snapshot = slow_fleet
    assert pulls_of(snapshot) == (1.0,) * 4
