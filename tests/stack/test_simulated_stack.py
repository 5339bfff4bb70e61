"""The simulated stack keeps the contract of every stack, in virtual time."""

import contract
import httpx
import pytest
from starlette.testclient import TestClient

from stack.errors import RefusedError, UnreachableError
from stack.exposition import readings_in
from stack.reading import GATEWAY, Gauge
from stack.setting import Setting
from stack.simulator.faults.fault import parse_fault
from stack.simulator.fleet import FleetSpec
from stack.simulator.load.generated import steady
from stack.simulator.server import PacedStack, metrics_app
from stack.simulator.simulation import EPOCH_S, Simulation
from stack.simulator.stack import SimulatedReader, SimulatedStack
from stack.snapshot import Signal

NAMES = FleetSpec(replicas=2).replica_names


def running_stack(*faults: str, warm_s: float = 60.0) -> SimulatedStack:
    simulation = Simulation(
        FleetSpec(replicas=2), steady(12, 400, seed=1), faults=[parse_fault(fault) for fault in faults]
    )
    stack = SimulatedStack(simulation)
    stack.clock.sleep(warm_s)
    return stack


@pytest.mark.parametrize("setting", contract.SETTINGS, ids=lambda setting: setting.name)
def test_writes_are_set_to_value(setting: Setting):
    contract.check_a_write_is_set_to_value(running_stack().control, setting, NAMES[0])


def test_unknown_names():
    contract.check_unknown_names_are_refused(running_stack().control, NAMES[0])


@pytest.mark.parametrize("setting", contract.SETTINGS, ids=lambda setting: setting.name)
def test_bad_values(setting: Setting):
    contract.check_bad_values_are_refused_and_nothing_changes(running_stack().control, setting, NAMES[0])


def test_snapshots():
    stack = running_stack()
    contract.check_a_snapshot_is_a_frozen_account_of_its_window(stack.reader, 60.0)
    contract.check_reading_gives_no_way_to_write(stack.reader)


def test_a_reader_that_was_never_fed_says_so():
    with pytest.raises(UnreachableError, match="not been scraped"):
        SimulatedReader(dict, kept=3).snapshot(60.0)


def test_a_snapshot_tells_load_settings_and_configuration():
    stack = running_stack()
    stack.control.write("routing_weight", NAMES[1], 50.0)
    stack.clock.sleep(60.0)
    snapshot = stack.reader.snapshot(60.0)
    assert snapshot.time_s == EPOCH_S + 120.0
    arrived = snapshot.per_s(Signal.ARRIVED)
    assert arrived == pytest.approx(12.0, rel=0.2)
    assert snapshot.settings["routing_weight"] == {NAMES[0]: 100.0, NAMES[1]: 50.0}
    assert float(snapshot.configuration[NAMES[0]]["num_gpu_blocks"]) == FleetSpec().blocks_per_replica
    assert snapshot.value(Signal.UP) == 2.0
    ttft_s, itl_s = snapshot.value(Signal.TTFT_P50_S), snapshot.value(Signal.ITL_MEAN_S)
    assert ttft_s is not None
    assert itl_s is not None
    assert 0.01 < ttft_s < 0.2
    assert 0.004 < itl_s < 0.03


def test_the_clock_drives_the_simulation():
    stack = running_stack(warm_s=0.0)
    start_s = stack.clock.now_s()
    stack.clock.sleep(12.5)
    assert stack.clock.now_s() == start_s + 12.5
    assert stack.simulation.now_s == 12.5


def test_scrape_times_do_not_drift():
    stack = running_stack(warm_s=0.0)
    for _ in range(7):
        stack.clock.sleep(3.0)
    assert stack.reader.snapshot(60.0).time_s == EPOCH_S + 20.0


def test_a_restart_setting_takes_the_replica_away_and_brings_it_back():
    stack = running_stack()
    stack.control.write("execution_profile", NAMES[0], "fp8_kv")
    stack.clock.sleep(45.0)
    assert stack.reader.snapshot(5.0).value(Signal.UP, NAMES[0]) == 0.0
    stack.clock.sleep(120.0)
    snapshot = stack.reader.snapshot(30.0)
    assert snapshot.value(Signal.UP, NAMES[0]) == 1.0
    assert float(snapshot.configuration[NAMES[0]]["num_gpu_blocks"]) == 2 * FleetSpec().blocks_per_replica
    assert not (stack.simulation.outcomes().status > 4).any()


def test_a_dead_replica_cannot_be_read_but_can_be_routed_around():
    stack = running_stack("lost_replica:1@30")
    with pytest.raises(UnreachableError):
        stack.control.write("running_request_cap", NAMES[1], 10.0)
    assert stack.control.write("routing_weight", NAMES[1], 0.0) == 0.0


def test_refusal_states_what_is_held():
    with pytest.raises(RefusedError, match=r"must lie in 0 to 256 points, not 300; the stack now holds 100\.0"):
        running_stack().control.write("routing_weight", NAMES[0], 300.0)


def test_metrics_page_reads_back():
    stack = running_stack()
    response = TestClient(metrics_app(stack)).get("/metrics")
    assert response.status_code == httpx.codes.OK
    assert response.headers["content-type"].startswith("text/plain")
    found = {reading.replica for reading in readings_in(response.text, "http://simulated/metrics")}
    assert {*NAMES, GATEWAY} <= found
    told = next(one for one in readings_in(response.text, "page") if one.replica == NAMES[0])
    own = next(one for one in stack.simulation.readings() if one.replica == NAMES[0])
    assert told.counters == {key: value for key, value in own.counters.items() if key in told.counters}
    assert told.gauges[Gauge.RUNNING] == own.gauges[Gauge.RUNNING]


def test_virtual_time_follows_wall_time():
    stack, wall = running_stack(), iter((100.0, 101.0, 103.0))
    paced = PacedStack(stack, speed=10.0, wall_s=lambda: next(wall))
    paced.metrics()
    assert stack.simulation.now_s == 70.0
    paced.metrics()
    assert stack.simulation.now_s == 90.0
