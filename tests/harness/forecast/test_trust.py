from dataclasses import replace

import pytest
from watching import watched, weight

from harness.action import Action, Trust
from harness.forecast.trust import doubts_of
from stack.layer import Layer
from stack.simulator.faults.fault import parse_fault
from stack.simulator.fleet import FleetSpec
from stack.simulator.load.generated import steady
from stack.simulator.simulation import Simulation


def batch_cap():
    return Action(
        setting="batch_in_flight_cap", target="fleet", before=1e6, after=8.0, cause="", layer=Layer.ROUTING, reason=""
    )


def test_a_measured_steady_stack_is_in_range(slow_fleet):
    forecaster, snapshot = slow_fleet
    assert list(doubts_of(forecaster.belief(snapshot), weight("replica-0"))) == []


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"step_scale": (1.0, 1.0, 8.0, 1.0)}, "outside 0.2 to 8"),
        ({"blind": ("replica-1",)}, "replica-1 tell nothing new"),
    ],
)
def test_each_way_out_of_range_has_its_reason(slow_fleet, changed, says):
    forecaster, snapshot = slow_fleet
    belief = replace(forecaster.belief(snapshot), **changed)
    assert any(says in doubt for doubt in doubts_of(belief, weight("replica-0")))


def test_an_unsteady_load_and_unseen_classes_are_reasons(slow_fleet):
    forecaster, snapshot = slow_fleet
    belief = forecaster.belief(snapshot)
    wild = replace(belief, load=replace(belief.load, rate_spread=0.6))
    assert any("not steady" in doubt for doubt in doubts_of(wild, weight("replica-0")))
    assert any("batch" in doubt for doubt in doubts_of(belief, batch_cap()))


@pytest.mark.parametrize("fault", ["stale_metrics@150", "missing_metrics:1@150", "nan_metrics:1@150"])
def test_blind_is_doubted_not_an_error(fault):
    simulation = Simulation(FleetSpec(replicas=3), steady(15.0, 400, seed=2), faults=[parse_fault(fault)])
    forecaster, snapshot = watched(simulation, 4)
    forecast = forecaster.forecast(weight("replica-0"), snapshot)
    assert forecast.trust is Trust.DOUBTED
    assert "tell nothing new" in forecast.note or not forecast.effects
