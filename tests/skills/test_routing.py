"""Replicas compared with their peers."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_snapshots import context, kv, measured, pool, queue, running

from harness.diagnosis import Finding
from skills.candidates import candidates
from skills.diagnose import diagnose
from stack.layer import Layer
from stack.snapshot import Fact, Signal, Snapshot


def found_in(snapshot: Snapshot) -> tuple[Finding, ...]:
    return diagnose(snapshot, context(snapshot)).problems


def weighted(snapshot: Snapshot, **weights: float) -> Snapshot:
    held = {**snapshot.settings["routing_weight"], **weights}
    return replace(snapshot, settings={**snapshot.settings, "routing_weight": held})


SLOW = measured(itl_mean_s=0.026, prefill_mean_s=0.16)


def test_a_slow_replica_is_named_and_gets_a_weight_in_proportion_to_its_speed():
    seen = pool({}, SLOW, {}, {})
    problem = found_in(seen)[0]
    assert (problem.layer, problem.cause, problem.target) == (Layer.ROUTING, "slow_replica", "r1")
    assert problem.severity >= 0.5
    weights = [a.after for a in candidates(problem, context(seen)) if a.setting == "routing_weight"]
    assert weights[0] == pytest.approx(100 * 0.012 / 0.026, abs=5)


def test_a_busier_replica_is_not_slow():
    busier = measured(itl_mean_s=0.026, generation_tokens=90_000.0, prompt_tokens=500_000.0)
    assert found_in(pool({}, busier, {}, {})) == ()


def test_a_replica_that_was_slow_for_half_the_window_only_waits_for_the_next():
    burst = {Signal.ITL_MEAN_S: Fact(0.02, start=0.012, age_s=2.0)}
    assert found_in(pool({}, burst, {}, {})) == ()


def test_a_mean_over_few_answers_says_nothing():
    few = measured(itl_mean_s=0.04, generation_tokens=200.0, prompt_tokens=900.0, finished=4.0)
    assert found_in(pool({}, few, {}, {})) == ()


def test_a_weight_that_already_allows_for_the_speed_is_only_context():
    seen = weighted(pool({}, SLOW, {}, {}), r1=46.0)
    assert found_in(seen) == ()
    assert any(one.cause == "slow_replica" for one in diagnose(seen, context(seen)).findings)


def test_its_own_queue_is_a_symptom_of_the_slow_replica():
    slow = {**SLOW, **running(32), **queue(40), **measured(ttft_p95_s=6.0)}
    problems = found_in(pool({}, slow, {}, {}))
    assert [one.cause for one in problems][:2] == ["slow_replica", "running_cap_binds"]
    assert problems[0].severity >= problems[1].severity


def test_a_smaller_kv_pool_explains_slow_tokens_and_an_equal_one_is_a_symptom():
    full = {**SLOW, **kv(0.98, 0.97, preempted=40, early=20)}
    seen = pool({}, full, {}, {})
    assert [one.cause for one in found_in(seen)][:2] == ["slow_replica", "kv_pressure"]
    held = {**seen.settings["usable_kv_blocks_ratio"], "r1": 0.3}
    smaller = replace(seen, settings={**seen.settings, "usable_kv_blocks_ratio": held})
    assert [one.cause for one in found_in(smaller)] == ["kv_blocks_held_back"]


def test_slow_tokens_beside_long_prompts_are_not_a_slow_machine():
    unlucky = measured(itl_mean_s=0.026, prefill_mean_s=0.08)
    assert found_in(pool({}, unlucky, {}, {})) == ()


def test_fragmented_memory_explains_slow_tokens():
    fragmented = {**SLOW, Signal.FRAGMENTATION_RATIO: Fact(0.45, age_s=2.0)}
    problems = found_in(pool({}, fragmented, {}, {}))
    assert (problems[0].layer, problems[0].cause) == (Layer.MEMORY, "memory_fragmented")


@given(times=st.lists(st.floats(0.010, 0.0135), min_size=2, max_size=6), runs=st.lists(st.integers(8, 40), min_size=6))
@settings(max_examples=100, deadline=None)
def test_ordinary_differences_are_silent(times, runs):
    replicas = [
        {**measured(itl_mean_s=time), **running(float(n)), Signal.WAITING: Fact(0.0, 0.0, 0.0, 2.0, 0.0)}
        for time, n in zip(times, runs, strict=False)
    ]
    causes = {one.cause for one in found_in(pool(*replicas, running_request_cap=256.0))}
    assert "slow_replica" not in causes


def test_a_hot_replica_is_never_given_more_even_where_its_peers_have_a_higher_weight():
    seen = weighted(pool({**running(18, 1), **queue(0)}, {}), r0=30.0)
    hot = Finding(
        layer=Layer.ROUTING,
        cause="hot_replica",
        claim="r0 is hot",
        severity=0.8,
        confidence=0.8,
        tunable=True,
        target="r0",
        evidence={"fair_share_requests": 4.0},
    )
    weights = [a.after for a in candidates(hot, context(seen)) if a.setting == "routing_weight"]
    assert weights
    assert max(weights) < 30.0


def test_a_hot_replica_without_any_queue():
    seen = replace(pool(running(27, 8), running(5, 8), running(0, 8), running(0, 8)), scrapes=2)
    problem = found_in(seen)[0]
    assert (problem.cause, problem.target) == ("hot_replica", "r0")
    assert problem.evidence["running_start_requests"] == 8


def test_one_burst_is_not_hot_until_it_lasts_or_more_is_sent_there():
    burst = {**running(40, 8), **queue(30, 0)}
    causes = {one.cause for one in found_in(pool(burst, {}, {}, {}, running_request_cap=256.0))}
    assert "hot_replica" not in causes
    lasting = {**running(70, 60), **queue(50, 30)}
    assert found_in(pool(lasting, {}, {}, {}, running_request_cap=256.0))[0].cause == "hot_replica"
    sent = {**burst, Signal.ARRIVED: Fact(700.0, start=300.0, age_s=2.0)}
    assert found_in(pool({**sent, **running(70, 8)}, {}, {}, {}, running_request_cap=256.0))[0].cause == "hot_replica"


def test_what_chance_alone_does_is_not_hot():
    assert found_in(pool(running(9), running(4), running(3), running(4))) == ()


def test_a_weight_nobody_can_explain():
    heavy = {**running(30), **queue(6), **measured(ttft_p95_s=2.0)}
    seen = weighted(pool({}, heavy, {}, {}), r0=40.0, r2=40.0, r3=40.0, r1=240.0)
    problem = next(one for one in found_in(seen) if one.layer is Layer.ROUTING)
    assert (problem.cause, problem.target) == ("uneven_weights", "r1")
    assert {a.after for a in candidates(problem, context(seen)) if a.setting == "routing_weight"} == {120.0}


def test_a_replica_that_the_gateway_counts_as_down():
    down = measured(up=0.0)
    problem = found_in(pool({}, down, {}))[0]
    assert (problem.cause, problem.target, problem.tunable) == ("lost_replica", "r1", False)
    assert problem.advice


def test_a_drained_replica_is_not_lost():
    seen = pool({}, {**measured(up=0.0), **running(0)}, {})
    drained = {**seen.settings["replica_state"], "r1": "drain"}
    assert found_in(replace(seen, settings={**seen.settings, "replica_state": drained})) == ()


def test_a_replica_that_fails_what_it_is_sent():
    problem = found_in(pool(measured(errors=0.0), measured(errors=60.0), measured(errors=1.0)))[0]
    assert (problem.cause, problem.target, problem.tunable) == ("failing_replica", "r1", True)


def test_the_gateways_own_cap():
    waits = {Signal.GATEWAY_QUEUE: Fact(30.0, start=20.0, peak=30.0, age_s=2.0, trend_per_min=10.0)}
    seen = pool({}, {}, fleet=waits)
    problem = found_in(seen)[0]
    assert problem.cause == "gateway_cap_binds"
    raised = [a for a in candidates(problem, context(seen)) if a.setting == "replica_concurrency_cap"]
    assert {(a.target, a.after) for a in raised} == {("r0", 96.0), ("r1", 96.0)}


def test_more_load_than_capacity_is_answered_by_admission():
    waits = {Signal.GATEWAY_QUEUE: Fact(90.0, start=20.0, peak=90.0, age_s=2.0, trend_per_min=70.0)}
    seen = pool(kv(0.95, 0.94), kv(0.96, 0.95), fleet=waits)
    problem = next(one for one in found_in(seen) if one.cause == "overload")
    assert "deadline_shedding_ratio" in {a.setting for a in candidates(problem, context(seen))}


def test_time_spent_before_the_engine_is_not_tunable():
    late = measured(ttft_p95_s=20.0, ttft_mean_s=9.0, queue_mean_s=0.01, prefill_mean_s=0.1)
    problem = found_in(pool(late, {**late}, fleet=late))[0]
    assert (problem.layer, problem.cause, problem.tunable) == (Layer.DATA_PATH, "front_end_delay", False)


def test_one_replica_that_alone_falls_behind_is_a_question_of_routing():
    late = {**running(12), **queue(30, 20), **measured(ttft_p95_s=3.0, ttft_mean_s=1.5)}
    seen = pool(late, {}, {}, {})
    problem = found_in(seen)[0]
    assert (problem.layer, problem.cause, problem.target) == (Layer.ROUTING, "replica_behind", "r0")
    assert problem.severity < 0.9
    held = {**seen.settings["tokens_per_step"], "r0": 512.0}
    told_apart = replace(seen, settings={**seen.settings, "tokens_per_step": held})
    problem = found_in(told_apart)[0]
    assert (problem.layer, problem.cause) == (Layer.BATCHING, "prefill_backlog")
    restored = [a.after for a in candidates(problem, context(told_apart)) if a.setting == "tokens_per_step"]
    assert restored[0] == 1024.0


def test_peers_with_queues_of_their_own_do_not_keep_up():
    late = {**running(12), **queue(30, 20), **measured(ttft_p95_s=3.0, ttft_mean_s=1.5)}
    capped = {**running(32), **queue(40), **measured(ttft_p95_s=6.0)}
    causes = [one.cause for one in found_in(pool(late, capped, capped, capped))]
    assert causes[0] == "running_cap_binds"
    assert "replica_behind" not in causes
