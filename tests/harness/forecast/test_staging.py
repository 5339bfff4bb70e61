import numpy as np
import pytest
from watching import watched

from harness.forecast.belief import restricted
from harness.forecast.requests import arrivals_s
from harness.forecast.staging import staged
from stack.reading import Gauge
from stack.simulator.fleet import FleetSpec
from stack.simulator.load.generated import steady, with_shared_prefixes
from stack.simulator.simulation import Simulation
from stack.snapshot import Signal
from stack.window import snapshot_of


def gauges(stage, gauge):
    return [r.gauges[gauge] for r in stage.simulation.readings() if gauge in r.gauges and r.replica != "gateway"]


def test_a_stage_holds_what_the_snapshot_showed(slow_fleet):
    forecaster, snapshot = slow_fleet
    belief = forecaster.belief(snapshot)
    stage = staged(belief, 60.0, seed=3)
    assert gauges(stage, Gauge.RUNNING) == pytest.approx(list(belief.present.running), rel=0.08, abs=3)
    assert stage.simulation.now_s == pytest.approx(stage.begin_s)
    usage = [snapshot.value("kv_usage_ratio", name) for name in belief.names]
    assert gauges(stage, Gauge.KV_USAGE_RATIO) == pytest.approx(usage, abs=0.1)


def test_a_stage_with_shared_prefixes_starts_warm():
    traffic = with_shared_prefixes(steady(20.0, 300, seed=4), prefixes=100, chunks=4, seed=4)
    forecaster, snapshot = watched(Simulation(FleetSpec(), traffic), 4)
    belief = forecaster.belief(snapshot)
    stage = staged(belief, 60.0, seed=3)
    assert gauges(stage, Gauge.RUNNING) == pytest.approx(list(belief.present.running), abs=3)
    before = stage.simulation.readings()
    stage.simulation.advance(stage.begin_s + 20.0)
    seen = snapshot_of([*before, *stage.simulation.readings()], window_s=None)
    assert seen.value(Signal.PREFIX_HIT_RATIO) == pytest.approx(snapshot.value(Signal.PREFIX_HIT_RATIO), abs=0.1)


def test_a_stage_has_the_settings_in_force(slow_fleet):
    forecaster, snapshot = slow_fleet
    held = staged(forecaster.belief(snapshot), 60.0, seed=3).simulation.settings()
    for name, values in snapshot.settings.items():
        assert held[name] == values, name


def test_few_replicas_that_stand_for_many_take_their_part_of_the_load(slow_fleet):
    forecaster, snapshot = slow_fleet
    belief = forecaster.belief(snapshot)
    part = restricted(belief, (1, 3))
    assert part.load.arrivals_per_s == pytest.approx(belief.load.arrivals_per_s / 2)
    assert part.names == ("replica-1", "replica-3")
    assert part.step_scale == (belief.step_scale[1], belief.step_scale[3])


@pytest.mark.parametrize("burstiness", [1.0, 4.0])
def test_arrivals_have_the_rate_and_burstiness_asked_for(burstiness):
    times = np.concatenate([100.0 * i + arrivals_s(20.0, burstiness, 100.0, seed=i) for i in range(60)])
    counts = np.histogram(times, np.arange(0, 6000, 10.0))[0]
    assert counts.mean() == pytest.approx(200.0, rel=0.05)
    assert counts.var() / counts.mean() == pytest.approx(burstiness, rel=0.35)
