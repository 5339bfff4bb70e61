from dataclasses import replace

import pytest
from watching import RATE_PER_S, SLOW, watched, weight

from harness.action import Action, Trust
from harness.forecast.figures import figures_of
from harness.forecast.forecaster import Forecaster
from harness.objective import Slo
from harness.outcome import Measured, Verification
from stack.layer import Layer
from stack.simulator.fleet import FleetSpec
from stack.simulator.load.generated import steady
from stack.simulator.simulation import Simulation
from stack.snapshot import FLEET, Snapshot


def shedding(after):
    return Action(
        setting="deadline_shedding_ratio",
        target=FLEET,
        before=1e6,
        after=after,
        cause="overload",
        layer=Layer.ROUTING,
        reason="",
    )


def test_hidden_slowness_is_found_from_token_times(slow_fleet):
    forecaster, snapshot = slow_fleet
    scales = forecaster.belief(snapshot).step_scale
    assert scales[SLOW] == pytest.approx(2.5, rel=0.15)
    assert [s for i, s in enumerate(scales) if i != SLOW] == pytest.approx([1.25] * 3, rel=0.1)


def test_relieving_the_slow_replica_is_predicted_to_help_and_burdening_the_others_not_to(slow_fleet):
    forecaster, snapshot = slow_fleet
    helps, hurts = (forecaster.forecast(weight(name), snapshot) for name in (f"replica-{SLOW}", "replica-0"))
    assert helps.trust is Trust.TRUSTED
    assert helps.effects["slo_share"].after > helps.effects["slo_share"].before + 0.1
    assert helps.effects["e2e_p99_s"].after < helps.effects["e2e_p99_s"].before
    assert helps.effects["slo_share"].conclusive
    assert hurts.effects["slo_share"].after < hurts.effects["slo_share"].before


def test_what_comes_lies_in_the_interval():
    simulation = Simulation(FleetSpec(), steady(RATE_PER_S, 700, seed=4), step_scale=[1.2] * 4)
    forecaster, snapshot = watched(simulation, 6)
    action, now_s = weight("replica-1", 60.0), simulation.now_s
    forecast = forecaster.forecast(action, snapshot)
    changed = simulation.fork()
    changed.write(action.setting, action.target, action.after)
    changed.advance(now_s + forecast.horizon_s + 30.0)
    came = figures_of(changed.outcomes(), Slo(), now_s, now_s + forecast.horizon_s, changed.now_s)
    for name in ("e2e_p99_s", "e2e_p50_s", "itl_mean_s", "finished_per_s", "slo_share"):
        assert forecast.effects[name].low <= came[name] <= forecast.effects[name].high, name


def test_a_queue_that_stands_now_is_part_of_the_forecast():
    """A fleet far beyond its capacity: who comes now waits behind those who came before."""
    simulation = Simulation(FleetSpec(replicas=2), steady(80.0, 400, seed=5))
    forecaster, snapshot = watched(simulation, 4)
    forecast = forecaster.forecast(shedding(0.8), snapshot)
    assert forecast.effects["ttft_p99_s"].before > 10.0
    assert forecast.effects["ttft_p99_s"].after < 2.0


def test_intervals_hold_their_own_estimate_and_stay_possible(slow_fleet):
    forecaster, snapshot = slow_fleet
    for name, predicted in forecaster.forecast(weight(f"replica-{SLOW}"), snapshot).effects.items():
        assert 0 <= predicted.low <= predicted.after <= predicted.high, name
        assert predicted.move_low <= predicted.after - predicted.before + 1e-9, name
        assert predicted.after - predicted.before <= predicted.move_high + 1e-9, name
        if name.endswith(("_share", "_ratio")):
            assert predicted.high <= 1.0


def test_the_same_question_has_the_same_answer(slow_fleet):
    forecaster, snapshot = slow_fleet
    assert forecaster.forecast(weight("replica-2"), snapshot) == forecaster.forecast(weight("replica-2"), snapshot)


def test_a_change_that_cannot_act_has_no_effect_and_says_so(slow_fleet):
    forecaster, snapshot = slow_fleet
    predicted = forecaster.forecast(shedding(1e5), snapshot).effects["e2e_p99_s"]
    assert predicted.after == predicted.before and not predicted.conclusive


def test_a_screening_also_tells_what_twice_the_load_would_do(slow_fleet):
    forecaster, snapshot = slow_fleet
    screened = forecaster.screen(shedding(0.8), snapshot)
    assert screened.stressed["slo_share"].after > screened.stressed["slo_share"].before + 0.02
    assert screened.effects["slo_share"].before > screened.stressed["slo_share"].before
    assert forecaster.forecast(shedding(0.8), snapshot).stressed == {}


def test_predictions_that_keep_failing_are_doubted_also_after_a_restart(slow_fleet):
    first, snapshot = slow_fleet
    action = weight(f"replica-{SLOW}").with_forecast(first.forecast(weight(f"replica-{SLOW}"), snapshot))
    worse = Verification(Measured.WORSE, "slower", {"e2e_p99_s": {"before": 1.0, "after": 2.0, "ratio": 2.0}})
    forecaster = Forecaster(Slo(), [(action, worse)] * 3)
    forecaster.observe(snapshot)
    forecast = forecaster.forecast(weight("replica-2"), snapshot)
    assert forecast.trust is Trust.DOUBTED and "right sign" in forecast.note
    assert len(forecaster.records) == 3


def test_a_bias_seen_in_records_shifts_and_widens_later_forecasts(slow_fleet):
    first, snapshot = slow_fleet
    asked = weight(f"replica-{SLOW}")
    plain = first.forecast(asked, snapshot)
    predicted = plain.effects["e2e_p99_s"]
    ratio = predicted.after / predicted.before * 1.5
    found = Verification(Measured.IMPROVED, "", {"e2e_p99_s": {"before": 1.0, "after": ratio, "ratio": ratio}})
    taught = Forecaster(Slo(), [(asked.with_forecast(plain), found)] * 8)
    corrected = taught.forecast(asked, snapshot).effects["e2e_p99_s"]
    untaught = Forecaster(Slo()).forecast(asked, snapshot).effects["e2e_p99_s"]
    assert 1.1 < corrected.after / untaught.after < 1.5
    assert corrected.high / corrected.low > untaught.high / untaught.low


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"configuration": {"replica-0": {"model_name": "somebody/else"}}}, "no step-time table for the model"),
        ({"settings": {}}, "settings in force were not read"),
        ({"fleet": {}}, "arrivals or lengths"),
    ],
)
def test_outside_its_range_there_is_a_reason_and_no_effect(slow_fleet, changed, says):
    _, snapshot = slow_fleet
    forecast = Forecaster(Slo()).forecast(weight("replica-0"), replace(snapshot, **changed))
    assert forecast.effects == {} and forecast.trust is Trust.DOUBTED and says in forecast.note


def test_nothing_measured_means_no_forecast():
    forecast = Forecaster(Slo()).forecast(weight("replica-0"), Snapshot(0.0, 60.0, 2, {}, {}))
    assert forecast.effects == {} and "no forecast" in forecast.note


def test_a_restart_and_an_unknown_replica_are_not_rehearsed(slow_fleet):
    forecaster, snapshot = slow_fleet
    restart = Action(
        setting="execution_profile",
        target="replica-0",
        before="default",
        after="eager",
        cause="",
        layer=Layer.EXECUTION,
        reason="",
    )
    assert "restart" in forecaster.forecast(restart, snapshot).note
    assert "no replica" in forecaster.forecast(weight("replica-9"), snapshot).note


def test_a_large_fleet_is_represented_by_a_few_of_its_replicas():
    scale = [1.0] * 20
    scale[11] = 2.0
    simulation = Simulation(FleetSpec(replicas=20), steady(220.0, 200, seed=3), step_scale=scale)
    forecaster, snapshot = watched(simulation, 3)
    assert forecaster.belief(snapshot).step_scale[11] == pytest.approx(2.0, rel=0.2)
    forecast = forecaster.forecast(weight("replica-11"), snapshot)
    assert forecast.effects["slo_share"].after > forecast.effects["slo_share"].before
    assert forecast.effects["finished_per_s"].before == pytest.approx(220.0 * 8 / 20, rel=0.2)
