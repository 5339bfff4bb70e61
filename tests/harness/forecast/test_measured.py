from dataclasses import replace

import numpy as np
import pytest
from watching import snapshots

from harness.action import Action, Trust
from harness.forecast.clients import NOBODY_WAITS, Clients, clients_in
from harness.forecast.forecaster import Forecaster
from harness.objective import Slo
from stack.layer import Layer
from stack.simulator.fleet import FleetSpec
from stack.simulator.hardware.measured import MeasuredSteps
from stack.simulator.load.traffic import closed_loop, plain
from stack.simulator.simulation import Simulation
from stack.snapshot import FLEET, Signal

STEPS = MeasuredSteps(
    model="made",
    base_ms=30.0,
    token_ms=1.5,
    sequence_ms=0.5,
    kv_token_ms=0.001,
    kv_tokens=32_768,
    batch_max=16,
    error_ratio=0.08,
)
PAIR = FleetSpec(measured=STEPS, replicas=2)
NAMES = PAIR.replica_names


def cap(after, target=FLEET):
    return Action(
        setting="running_request_cap", target=target, before=4.0, after=after, cause="", layer=Layer.BATCHING, reason=""
    )


def lengths(n):
    rng = np.random.default_rng(3)
    return rng.integers(48, 160, n), rng.integers(32, 96, n)


def waiting_clients(count=24, n=3000):
    return closed_loop(count, *lengths(n), np.zeros(n))


def arriving(rate_per_s, n=3000):
    return plain(np.cumsum(np.random.default_rng(5).exponential(1 / rate_per_s, n)), *lengths(n))


def capped(traffic, scale=1.3, value=4.0):
    settings = {
        "running_request_cap": dict.fromkeys(NAMES, value),
        "tokens_per_step": dict.fromkeys(NAMES, 2048.0),
    }
    return Simulation(PAIR, traffic, step_scale=[scale] * 2, settings=settings)


def seen(simulation, minutes=4):
    forecaster = Forecaster(Slo())
    for snapshot in snapshots(simulation, minutes):
        forecaster.observe(snapshot)
    return forecaster, snapshot


@pytest.fixture(scope="module")
def queue():
    simulation = capped(waiting_clients())
    return simulation, *seen(simulation)


def true(simulation, value, span_s=120.0):
    changed = simulation.fork()
    for name in NAMES:
        changed.write("running_request_cap", name, value)
    begin_s = changed.now_s
    changed.advance(begin_s + span_s)
    outcomes = changed.outcomes()
    ended_s = outcomes.arrival_s + outcomes.e2e_s
    inside = (ended_s >= begin_s) & (ended_s < begin_s + span_s)
    return inside.sum() / span_s, float(np.nanmean(outcomes.itl_s[inside]))


def test_slowness_against_measured_steps_is_found(queue):
    _, forecaster, snapshot = queue
    belief = forecaster.belief(snapshot)
    assert belief.fleet.measured.token_ms == pytest.approx(STEPS.token_ms)
    assert belief.fleet.measured.kv_tokens == STEPS.kv_tokens
    assert belief.step_scale == pytest.approx((1.3, 1.3), rel=0.08)
    assert belief.load.clients.count == 24 and belief.load.clients.pause_s == 0.0


def test_clients_who_are_answered_sooner_since_a_change_have_no_pause_for_that():
    simulation = capped(waiting_clients())
    before = list(snapshots(simulation, 4))
    for name in NAMES:
        simulation.write("running_request_cap", name, 16.0)
    assert clients_in([*before, *snapshots(simulation, 2)]) == Clients(count=24, pause_s=0.0)


def test_clients_that_wait_are_answered_more_when_the_cap_rises(queue):
    simulation, forecaster, snapshot = queue
    effects = forecaster.forecast(cap(16.0), snapshot).effects
    per_s, itl_s = true(simulation, 16.0)
    assert effects["finished_per_s"].after == pytest.approx(per_s, rel=0.08)
    assert effects["finished_per_s"].after > 1.3 * effects["finished_per_s"].before
    assert effects["itl_mean_s"].after == pytest.approx(itl_s, rel=0.08)


def test_open_arrivals_are_not_taken_for_clients():
    simulation = capped(arriving(1.6))
    forecaster, snapshot = seen(simulation)
    belief = forecaster.belief(snapshot)
    assert belief.load.clients == NOBODY_WAITS
    forecast = forecaster.forecast(cap(16.0), snapshot)
    assert "requests come as they did" in forecast.note
    assert forecast.effects["finished_per_s"].after == pytest.approx(1.6, rel=0.15)


def test_pauses_of_clients_follow_from_throughput_and_answer_time():
    traffic = closed_loop(24, *lengths(3000), np.random.default_rng(7).exponential(1.2, 3000))
    clients = clients_in(list(snapshots(capped(traffic), 6)))
    assert clients.count == pytest.approx(24, abs=1) and clients.pause_s == pytest.approx(1.2, abs=0.6)


def test_batches_that_were_not_seen_are_doubted_and_say_so(queue):
    _, forecaster, snapshot = queue
    narrow = told(snapshot, step_batch_max=4.0)
    assert forecaster.forecast(cap(16.0), snapshot).trust is Trust.TRUSTED
    doubted = Forecaster(Slo()).forecast(cap(16.0), narrow)
    assert doubted.trust is Trust.DOUBTED and "its step times were measured with 4 at most" in doubted.note
    assert doubted.effects["finished_per_s"].after > 0 and "24 clients" not in doubted.note
    assert Forecaster(Slo()).forecast(cap(2.0), narrow).trust is Trust.TRUSTED


def test_step_times_that_fit_badly_are_doubted_and_widen_the_intervals(queue):
    _, _, snapshot = queue
    bad = told(snapshot, step_fit_error_ratio=0.4)
    forecast = Forecaster(Slo()).forecast(cap(8.0), bad)
    assert forecast.trust is Trust.DOUBTED and "known to 40% only" in forecast.note
    sure = Forecaster(Slo()).forecast(cap(8.0), snapshot).effects["itl_mean_s"]
    wide = forecast.effects["itl_mean_s"]
    assert wide.high / wide.low > 1.3 * sure.high / sure.low


def test_stalls_of_the_machine_are_doubted(queue):
    _, forecaster, snapshot = queue
    quick = told(snapshot, step_base_ms=15.0, step_token_ms=0.75, step_sequence_ms=0.25, step_kv_block_ms=0.0)
    forecast = Forecaster(Slo()).forecast(cap(8.0), quick)
    assert forecast.trust is Trust.DOUBTED and "something else takes their time" in forecast.note
    assert forecaster.forecast(cap(8.0), snapshot).trust is Trust.TRUSTED


def test_a_ceiling_that_was_seldom_reached_leaves_it_open_whether_clients_wait(queue):
    _, _, snapshot = queue
    inside = snapshot.fleet[Signal.GATEWAY_SESSIONS]
    dipped = replace(
        snapshot, fleet={**snapshot.fleet, Signal.GATEWAY_SESSIONS: replace(inside, start=15.0, value=18.0, peak=24.0)}
    )
    assert clients_in([dipped] * 2) == Clients(unsure=24)
    assert clients_in([dipped] * 4).count == 24
    assert clients_in([dipped]) == NOBODY_WAITS
    assert clients_in([snapshot] * 2).count == 24


def test_facts_that_came_as_labels_are_the_same(queue):
    _, _, snapshot = queue
    labels = {name: {key: str(value) for key, value in facts.items()} for name, facts in snapshot.configuration.items()}
    texts = Forecaster(Slo()).belief(replace(snapshot, configuration=labels))
    assert texts.fleet == Forecaster(Slo()).belief(snapshot).fleet


def test_the_cap_never_goes_beyond_what_the_engine_was_started_with(queue):
    _, _, snapshot = queue
    small = told(snapshot, max_num_seqs=8.0)
    forecaster = Forecaster(Slo())
    beyond, at = (forecaster.forecast(cap(value), small).effects for value in (16.0, 8.0))
    assert beyond == at


def test_limits_that_were_not_read_are_those_of_the_start(queue):
    _, _, snapshot = queue
    unread = replace(told(snapshot, max_num_batched_tokens=512.0), settings={"routing_policy": {FLEET: "round_robin"}})
    belief = Forecaster(Slo()).belief(unread)
    assert belief.held["tokens_per_step"] == dict.fromkeys(NAMES, 512.0)


def test_blocks_of_another_size_hold_as_many_tokens(queue):
    _, _, snapshot = queue
    belief = Forecaster(Slo()).belief(told(snapshot, block_size=128.0, num_gpu_blocks=256.0, step_kv_block_ms=0.128))
    assert belief.fleet.measured.kv_tokens == 32_768
    assert belief.fleet.measured.kv_token_ms == pytest.approx(0.001)


def test_without_step_times_the_reason_is_told(queue):
    _, _, snapshot = queue
    narrow = told(snapshot, step_fit="too narrow: 400 steps of 1 kinds with 4 to 4 tokens")
    forecast = Forecaster(Slo()).forecast(cap(8.0), narrow)
    assert forecast.effects == {} and "step times are too narrow: 400 steps" in forecast.note
    unmeasured = {
        name: {key: value for key, value in facts.items() if not key.startswith("step_")}
        for name, facts in snapshot.configuration.items()
    }
    forecast = Forecaster(Slo()).forecast(cap(8.0), replace(snapshot, configuration=unmeasured))
    assert forecast.effects == {} and "step times were not measured" in forecast.note


def test_windows_with_different_batches_tell_step_times_without_a_record():
    """The rate rises from 1 to 3.2 requests per second, and with it the batch."""
    rates = [(0.0, 1.0), (120.0, 2.2), (240.0, 3.2)]
    times = np.concatenate([start + np.cumsum(np.full(int(rate * 120), 1 / rate)) for start, rate in rates])
    simulation = capped(plain(times, *lengths(len(times))), value=32.0)
    forecaster = Forecaster(Slo())
    for snapshot in map(unmeasured, snapshots(simulation, 5)):
        forecaster.observe(snapshot)
    forecast = forecaster.forecast(cap(4.0), snapshot)
    assert forecaster.belief(snapshot).fleet.measured.error_ratio >= 0.15
    assert forecast.effects["itl_mean_s"].before == pytest.approx(snapshot.value(Signal.ITL_MEAN_S), rel=0.25)
    assert forecast.effects["itl_mean_s"].after < forecast.effects["itl_mean_s"].before


def told(snapshot, **facts):
    changed = {name: {**known, **facts} for name, known in snapshot.configuration.items()}
    return replace(snapshot, configuration=changed)


def unmeasured(snapshot):
    kept = {
        name: {key: value for key, value in facts.items() if not key.startswith("step_")}
        for name, facts in snapshot.configuration.items()
    }
    return replace(snapshot, configuration=kept)
