import math
from dataclasses import replace

import pytest
from gate_situation import (
    ALL,
    NOW,
    drain,
    forecast,
    hit,
    past,
    raising,
    restart,
    ruled,
    snapshot,
    with_states,
)
from scripted_stack import weight_action

from harness.action import Action, Forecast, Trust
from harness.gate.check import RULES
from harness.gate.history import History
from harness.mode import Mode
from harness.outcome import Ending
from harness.policy import Policy
from harness.verdict import Ruling
from stack.snapshot import Fact, Signal, Snapshot


def test_a_sound_change_is_allowed_with_every_rule_in_words():
    verdict = ruled(raising())
    assert verdict.ruling is Ruling.ALLOW, verdict.hits
    assert [r.rule for r in verdict.rules] == [rule.__name__ for rule in RULES] and all(r.detail for r in verdict.rules)


@pytest.mark.parametrize(
    ("action", "rule", "words"),
    [
        (raising(setting="gpu_fan"), "known_setting", "gpu_fan"),
        (raising(target="r9"), "target_exists", "r9"),
        (raising(5000.0), "within_bounds", "4096"),
        (raising(math.nan), "within_bounds", "nan"),
        (raising(math.inf), "within_bounds", "could not be decided"),
        (raising(16.0), "within_bounds", "already"),
        (raising(40.0), "step_size", "step of 24"),
        (replace(raising(), before=12.0), "undo_known", "holds 16"),
        (replace(weight_action(), setting="replica_state", before="ready", after="drain"), "undo_known", "not read"),
    ],
)
def test_an_unsound_change_is_denied(action: Action, rule: str, words: str):
    verdict = ruled(action)
    assert verdict.ruling is Ruling.DENY
    assert words in hit(verdict, rule)


def test_a_setting_that_is_not_enabled_is_denied():
    verdict = ruled(raising(), policy=Policy.load(enabled=["routing_weight"]))
    assert "not enabled" in hit(verdict, "enabled_setting")


@pytest.mark.parametrize("value", [math.nan, math.inf, -1.0, None])
@pytest.mark.parametrize("target", ["fleet", "r0"])
def test_a_fact_that_is_missing_or_no_number_denies(value: float | None, target: str):
    seen = snapshot()
    facts = dict(seen.fleet if target == "fleet" else seen.replicas[target])
    if value is None:
        del facts[Signal.WAITING]
    else:
        facts[Signal.WAITING] = Fact(value, age_s=1.0)
    seen = replace(seen, fleet=facts) if target == "fleet" else replace(seen, replicas={**seen.replicas, target: facts})
    for action in (raising(), weight_action()):
        verdict = ruled(action, seen)
        assert verdict.ruling is Ruling.DENY and "waiting_requests" in hit(verdict, "fresh_facts")


@pytest.mark.parametrize("age_s", [31.0, None, math.nan])
def test_a_fact_that_is_old_or_of_unknown_age_denies_even_protection(age_s: float | None):
    seen = snapshot()
    seen = replace(seen, fleet={**seen.fleet, Signal.RUNNING: Fact(8.0, age_s=age_s)})
    assert hit(ruled(weight_action(), seen), "fresh_facts")


@pytest.mark.parametrize("changes", [{"time_s": None}, {"window_s": 0.0}, {"window_s": None}])
def test_a_snapshot_without_time_or_window_denies(changes: dict[str, None]):
    assert hit(ruled(raising(), replace(snapshot(), **changes)), "fresh_snapshot")


def test_an_old_snapshot_denies():
    assert "45 s old" in hit(ruled(raising(), now_s=NOW + 45), "fresh_snapshot")


def test_a_short_history_denies_what_can_wait():
    assert hit(ruled(raising(), history=History(watched_s=60)), "enough_history")
    assert ruled(weight_action(), history=History(watched_s=60)).ruling is Ruling.ALLOW


@pytest.mark.parametrize(
    ("history", "rule"),
    [
        (History((past(settling=True, ending=None),), None, 3600), "one_settling"),
        (History(tuple(past(in_probation=True, ending=None) for _ in range(3)), None, 3600), "one_settling"),
        (History((past(touched_s=NOW - 100),), None, 3600), "cooldown"),
        (History((past(setting="routing_weight", touched_s=NOW - 20),), None, 3600), "cooldown"),
        (History((past(before=24.0, written_s=NOW - 500),), None, 3600), "reversal"),
        (History(tuple(past() for _ in range(6)), None, 3600), "hourly_budget"),
        (History((), "stopped by olga", 3600), "not_frozen"),
    ],
)
def test_pace_denies(history: History, rule: str):
    verdict = ruled(raising(), history=history)
    assert verdict.ruling is Ruling.DENY and hit(verdict, rule)


def test_a_setting_moved_to_and_fro_is_left_alone_even_for_protection():
    values = [(100.0, 80.0), (80.0, 100.0), (100.0, 80.0)]
    moves = tuple(
        past(
            setting="routing_weight", before=b, after=a, written_s=NOW - 4000 + i * 900, touched_s=NOW - 4000 + i * 900
        )
        for i, (b, a) in enumerate(values)
    )
    assert "reversed 2 times" in hit(ruled(weight_action(), history=History(moves, None, 3600)), "reversal")


def test_two_rollbacks_in_an_hour_hand_the_decision_to_a_person():
    undone = past(setting="routing_weight", target="r3", ending=Ending.ROLLED_BACK)
    verdict = ruled(raising(), history=History((undone, undone), None, 3600))
    assert verdict.ruling is Ruling.ASK and hit(verdict, "trip")


@pytest.mark.parametrize(
    ("mode", "simulated", "ruling"),
    [
        (Mode.SHADOW, True, Ruling.ASK),
        (Mode.APPROVE, True, Ruling.ASK),
        (Mode.AUTO, True, Ruling.ALLOW),
        (Mode.AUTO, False, Ruling.ASK),
    ],
)
def test_mode_decides_who_is_asked(mode: Mode, simulated: bool, ruling: Ruling):
    assert ruled(raising(), mode=mode, simulated=simulated).ruling is ruling


def test_memory_denies_what_would_fill_the_kv_cache():
    full = snapshot(per_replica={Signal.KV_USAGE_RATIO: 0.7, Signal.RUNNING: 16.0, Signal.WAITING: 32.0})
    detail = hit(ruled(raising(24.0, None), full), "memory_headroom")
    assert "1.05" in detail and "0.85" in detail
    predicted = forecast(slo_share=(0.7, 0.9), kv_usage_p95_ratio=(0.7, 0.9))
    assert hit(ruled(raising(f=predicted)), "memory_headroom")
    assert not [r for r in ruled(replace(raising(), after=12.0), full).hits if r.rule == "memory_headroom"]


def test_a_trusted_forecast_below_the_use_measured_now_does_not_help():
    full = snapshot(per_replica={Signal.KV_USAGE_RATIO: 0.9})
    assert hit(ruled(raising(), full), "memory_headroom")


def test_memory_denies_on_a_full_device():
    seen = snapshot(per_replica={Signal.DEVICE_FREE_BYTES: 3 * 2.0**30, Signal.DEVICE_TOTAL_BYTES: 80 * 2.0**30})
    assert "3.00 GiB" in hit(ruled(raising(), seen), "memory_headroom")


HOT = {Signal.E2E_P99_S: 9.5, Signal.TTFT_P99_S: 1.2}


@pytest.mark.parametrize(
    ("predicted", "waiting", "denied"),
    [
        (forecast(slo_share=(0.7, 0.9), e2e_p99_s=(9.5, 9.9)), 10.0, True),
        (forecast(slo_share=(0.7, 0.9), e2e_p99_s=(9.5, 7.0)), 10.0, False),
        (forecast(Trust.DOUBTED, e2e_p99_s=(9.5, 9.9)), 10.0, False),
        (forecast(Trust.DOUBTED, e2e_p99_s=(9.5, 5.0)), 0.0, True),
        (None, 0.0, True),
        (None, 10.0, False),
    ],
)
def test_latency_near_its_slo(predicted: Forecast | None, waiting: float, denied: bool):
    verdict = ruled(raising(f=predicted), snapshot({**HOT, Signal.WAITING: waiting}))
    assert bool([r for r in verdict.hits if r.rule == "latency_headroom"]) is denied


def without(*signals: Signal) -> Snapshot:
    seen = snapshot({Signal.WAITING: 10.0})
    return replace(seen, fleet={s: f for s, f in seen.fleet.items() if s not in signals})


def test_with_too_few_requests_for_a_p99_it_is_taken_as_near_its_limit():
    seen = without(Signal.TTFT_P99_S, Signal.E2E_P99_S)
    seen = replace(seen, fleet={**seen.fleet, Signal.TTFT_MEAN_S: Fact(0.1, age_s=1.0)})
    idle = replace(seen, fleet={**seen.fleet, Signal.WAITING: Fact(0.0, age_s=1.0)})
    relieving = ruled(raising(f=None), seen)
    assert not [r for r in relieving.hits if r.rule == "latency_headroom"]
    assert "too few requests in the window for a P99" in hit(ruled(raising(f=None), idle), "latency_headroom")


def test_no_latency_at_all_denies():
    seen = without(Signal.TTFT_P99_S, Signal.E2E_P99_S, Signal.TTFT_MEAN_S, Signal.E2E_MEAN_S)
    assert "could not be decided" in hit(ruled(raising(), seen), "latency_headroom")


def test_gain():
    small = forecast(slo_share=(0.9, 0.91), e2e_p99_s=(5.0, 4.9))
    assert ruled(raising(f=small)).ruling is Ruling.DENY
    assert ruled(raising(f=None)).ruling is Ruling.ASK
    assert ruled(raising(f=None), snapshot({Signal.WAITING: 5.0})).ruling is Ruling.ALLOW
    faster = forecast(slo_share=(1.0, 1.0), e2e_p99_s=(5.0, 4.0))
    assert ruled(raising(f=faster)).ruling is Ruling.ALLOW


def test_the_last_healthy_replicas_stay():
    assert ruled(drain(), with_states(snapshot())).ruling is Ruling.ALLOW
    few = with_states(snapshot(), r2="drain", r3="drain")
    assert "1 of 4" in hit(ruled(drain(), few), "healthy_replicas")


@pytest.mark.parametrize(
    ("fleet", "per_replica", "ruling"),
    [
        ({}, {Signal.KV_USAGE_RATIO: 0.1}, Ruling.ASK),
        ({Signal.WAITING: 1.0}, {Signal.KV_USAGE_RATIO: 0.1}, Ruling.DENY),
        ({Signal.GATEWAY_QUEUE: 3.0}, {Signal.KV_USAGE_RATIO: 0.1}, Ruling.DENY),
        ({}, {Signal.KV_USAGE_RATIO: 0.3}, Ruling.DENY),
    ],
)
def test_restarts_only_at_low_traffic_with_an_empty_queue(fleet, per_replica, ruling: Ruling):
    seen = snapshot(fleet, per_replica)
    seen = replace(seen, settings={**seen.settings, "worker_generation": dict.fromkeys(seen.replicas, 0.0)})
    assert ruled(restart(), seen).ruling is ruling


def test_equal_inputs_give_equal_verdicts():
    assert ruled(raising()) == ruled(raising())


def test_on_a_real_stack_auto_asks_until_an_admin_vouches_for_the_setting():
    vouched = ALL.model_copy(update={"vouched": frozenset({"running_request_cap"})})
    assert "shadow record" in hit(ruled(raising(), simulated=False), "authority")
    assert ruled(raising(), policy=vouched, simulated=False).ruling is Ruling.ALLOW
    assert ruled(raising(), policy=vouched, mode=Mode.SHADOW, simulated=False).ruling is Ruling.ASK


def test_nothing_is_set_beyond_what_the_engine_was_started_with():
    seen = snapshot()
    started = replace(seen, configuration={"r0": {"running_request_cap_most": "20", "running_request_cap_least": 1.0}})
    assert "r0 takes 1 to 20 requests as it was started, not 24" in hit(ruled(raising(), started), "within_bounds")
    assert ruled(raising(20.0), started).ruling is Ruling.ALLOW
