"""The forecast sees metrics only; the simulations it is tried on have slow hardware that it is not told of."""

from collections.abc import Iterator

import numpy as np
import pytest

from harness.action import Action, Trust
from harness.forecast.calibration import step_scales
from harness.forecast.forecaster import Forecaster, fleet_of
from harness.forecast.load import Lengths, load_of
from harness.objective import Slo
from harness.outcome import Measured, Verification
from stack.layer import Layer
from stack.reading import Reading
from stack.simulator.fleet import FleetSpec
from stack.simulator.load.generated import steady
from stack.simulator.simulation import Simulation
from stack.snapshot import Snapshot
from stack.window import snapshot_of

SLOW = 2


def snapshots(simulation: Simulation, cycles: int) -> Iterator[Snapshot]:
    """A snapshot a minute, from readings every five seconds."""
    readings: list[Reading] = []
    for step in range(1, cycles * 12 + 1):
        simulation.advance(step * 5.0)
        readings += simulation.readings()
        if step % 12 == 0:
            now_s = readings[-1].time_s
            recent = [r for r in readings if r.time_s >= now_s - 60.1]
            yield snapshot_of(recent, window_s=60.0, now_s=now_s, settings=simulation.settings())


def weight(target: str, after: float = 50.0) -> Action:
    return Action(
        setting="routing_weight",
        target=target,
        before=100.0,
        after=after,
        cause="slow_replica",
        layer=Layer.ROUTING,
        reason="a slow replica should get less",
    )


@pytest.fixture(scope="module")
def slow_fleet() -> tuple[Forecaster, Snapshot]:
    scale = [1.0, 1.0, 1.0, 1.0]
    scale[SLOW] = 2.0
    simulation = Simulation(FleetSpec(), steady(45, 500, seed=1), step_scale=scale)
    forecaster = Forecaster(Slo())
    for snapshot in snapshots(simulation, 5):
        forecaster.observe(snapshot)
    return forecaster, snapshot


def test_hidden_slowness_is_found_from_token_times(slow_fleet):
    _, snapshot = slow_fleet
    scales = step_scales(fleet_of(snapshot, Slo()), snapshot)
    assert scales[SLOW] == pytest.approx(2.0, rel=0.25)
    assert [s for i, s in enumerate(scales) if i != SLOW] == pytest.approx([1.0] * 3, rel=0.15)


def test_relieving_the_slow_replica_is_predicted_to_help_and_burdening_the_others_not_to(slow_fleet):
    forecaster, snapshot = slow_fleet
    helps, hurts = (
        forecaster.forecast(weight("replica-2"), snapshot),
        forecaster.forecast(weight("replica-0"), snapshot),
    )
    assert helps.trust is Trust.TRUSTED
    assert helps.effects["slo_share"].after > helps.effects["slo_share"].before + 0.1
    assert helps.effects["e2e_p99_s"].after < helps.effects["e2e_p99_s"].before
    assert hurts.effects["slo_share"].after < hurts.effects["slo_share"].before


def test_intervals_hold_their_own_estimate_and_stay_possible(slow_fleet):
    forecaster, snapshot = slow_fleet
    for name, predicted in forecaster.forecast(weight("replica-2"), snapshot).effects.items():
        assert 0 <= predicted.low <= predicted.after <= predicted.high, name
        if name.endswith(("_share", "_ratio")):
            assert predicted.high <= 1.0


def test_the_same_question_has_the_same_answer(slow_fleet):
    forecaster, snapshot = slow_fleet
    assert forecaster.forecast(weight("replica-2"), snapshot) == forecaster.forecast(weight("replica-2"), snapshot)


def test_predictions_that_keep_failing_are_doubted(slow_fleet):
    first, snapshot = slow_fleet
    forecaster = Forecaster(Slo())
    forecaster.observe(snapshot)
    action = weight("replica-2").with_forecast(first.forecast(weight("replica-2"), snapshot))
    worse = Verification(Measured.WORSE, "slower", {"e2e_p99_s": {"before": 1.0, "after": 2.0, "ratio": 2.0}})
    for _ in range(3):
        forecaster.record(action, worse)
    assert forecaster.forecast(weight("replica-2"), snapshot).trust is Trust.DOUBTED
    assert len(forecaster.records) == 3


def test_without_load_or_a_known_model_there_is_no_forecast(slow_fleet):
    _, snapshot = slow_fleet
    assert Forecaster(Slo()).forecast(weight("replica-0"), Snapshot(0.0, 60.0, 2, {}, {})) is None
    unknown = Snapshot(
        snapshot.time_s,
        snapshot.window_s,
        snapshot.scrapes,
        snapshot.replicas,
        snapshot.fleet,
        configuration={"replica-0": {"model_name": "somebody/else"}},
        settings=snapshot.settings,
    )
    assert Forecaster(Slo()).forecast(weight("replica-0"), unknown) is None


def test_load_is_what_arrived_not_what_was_finished(slow_fleet):
    _, snapshot = slow_fleet
    load = load_of([snapshot])
    assert load.arrivals_per_s == pytest.approx(45, rel=0.1)
    assert load.prompt.mean_tokens == pytest.approx(1230, rel=0.15)
    assert load.hit_ratio == 0.0


def test_drawn_lengths_keep_the_measured_mean_and_range():
    lengths = Lengths((0.0, 100.0, 1000.0), (0.9, 0.1), 130.0)
    drawn = lengths.draw(50_000, np.random.default_rng(1))
    assert drawn.mean() == pytest.approx(130.0, rel=0.03)
    assert drawn.max() < 2000
