"""Which layer comes first when several look bad, and when silence is right."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_snapshots import CALM, context, kv, measured, pool, queue, running

from harness.diagnosis import Diagnosis
from skills.candidates import candidates
from skills.diagnose import diagnose
from stack.layer import Layer
from stack.snapshot import Fact, Missing, Signal, Snapshot

SLOW_FIRST_TOKENS = measured(ttft_p95_s=3.0, ttft_mean_s=1.5)


def diagnosed(snapshot: Snapshot) -> Diagnosis:
    return diagnose(snapshot, context(snapshot))


def first(snapshot: Snapshot) -> tuple[Layer, str, str]:
    problem = diagnosed(snapshot).problems[0]
    return problem.layer, problem.cause, problem.target


def raises_a_cap(snapshot: Snapshot) -> list[str]:
    return [
        f"{action.setting} {action.before} -> {action.after}"
        for finding in diagnosed(snapshot).findings
        for action in candidates(finding, context(snapshot))
        if action.setting in ("running_request_cap", "replica_concurrency_cap") and action.after > action.before
    ]


def test_a_calm_pool_is_healthy():
    assert diagnosed(pool({}, {}, {})).problems == ()
    assert diagnosed(pool({})).healthy


@pytest.mark.parametrize("usage", [0.5, 0.7, 0.8, 0.86])
def test_moderate_kv_use_is_no_problem(usage):
    assert diagnosed(pool(kv(usage), kv(usage))).healthy


def test_slots_bind_while_memory_is_free():
    stuck = {**running(32), **queue(20), **SLOW_FIRST_TOKENS}
    seen = pool(stuck, {}, {})
    assert first(seen) == (Layer.BATCHING, "running_cap_binds", "r0")
    assert "running_request_cap 32.0 -> 64.0" in raises_a_cap(seen)


def test_the_same_on_all_replicas_is_one_finding_of_the_fleet():
    stuck = {**running(32), **queue(20), **SLOW_FIRST_TOKENS}
    found = diagnosed(pool(stuck, stuck, stuck)).problems
    assert [(one.cause, one.target) for one in found] == [("running_cap_binds", "fleet")]


def test_kv_comes_before_a_bigger_batch():
    full = {**running(32), **queue(20), **kv(0.99, 0.9, preempted=60, early=20), **SLOW_FIRST_TOKENS}
    seen = pool(full, {}, {})
    assert first(seen)[:2] == (Layer.CACHE, "kv_pressure")
    assert all(one.cause != "running_cap_binds" for one in diagnosed(seen).findings)
    assert raises_a_cap(seen) == []


def test_pressure_that_is_over_ranks_below_what_binds_now_and_still_bars_a_bigger_batch():
    now = {**running(32), **queue(40, 10), **kv(0.4, 1.0, preempted=50, early=50), **SLOW_FIRST_TOKENS}
    seen = pool(now)
    found = diagnosed(seen).findings
    assert [one.cause for one in found][:2] == ["running_cap_binds", "kv_pressure_past"]
    assert raises_a_cap(seen) == []


@given(
    usage=st.floats(0, 1),
    before=st.floats(0, 1),
    preempted=st.integers(0, 300),
    waiting=st.integers(0, 200),
    runs=st.integers(0, 32),
    replicas=st.integers(1, 4),
)
@settings(max_examples=150, deadline=None)
def test_no_cap_is_ever_raised_under_pressure(usage, before, preempted, waiting, runs, replicas):
    changed = {**running(runs), **queue(waiting), **kv(usage, before, preempted), **SLOW_FIRST_TOKENS}
    seen = pool(changed, *({} for _ in range(replicas - 1)))
    if max(usage, before) >= 0.85 or preempted > 0:
        assert [raised for raised in raises_a_cap(seen) if "on r0" in raised or replicas == 1] == []


def test_no_cap_is_raised_while_kv_use_is_unknown():
    blind = {**CALM, **running(32), **queue(40), **SLOW_FIRST_TOKENS}
    seen = pool({}, {})
    replicas = {"r0": {signal: fact for signal, fact in blind.items() if signal is not Signal.KV_USAGE_RATIO}}
    seen = Snapshot(seen.time_s, 60.0, 13, replicas, seen.fleet, settings=seen.settings)
    assert raises_a_cap(seen) == []


def test_a_queue_that_empties_fast_is_no_reason_to_act():
    emptying = {**running(32), **queue(20, 80), **SLOW_FIRST_TOKENS}
    assert all(one.cause != "running_cap_binds" for one in diagnosed(pool(emptying, emptying)).problems)


def test_preemptions_that_no_longer_happen_are_silent():
    assert diagnosed(pool(kv(0.3, 0.3, preempted=0.0))).healthy


def test_one_preemption_among_many_requests_is_only_context():
    found = diagnosed(pool(kv(0.6, 0.6, preempted=1.0, early=0.0)))
    assert found.healthy
    assert any(one.layer is Layer.CACHE and one.evidence.get("preemptions") == 1.0 for one in found.findings)


def test_prefill_starves_decode():
    flood = measured(prompt_tokens=1_200_000.0, generation_tokens=4_000.0, itl_mean_s=0.3)
    assert first(pool({**flood, **running(20, 8), **queue(30)}))[:2] == (Layer.BATCHING, "prefill_starves_decode")


def test_long_prompts_within_the_promise_are_no_problem():
    heavy = measured(prompt_tokens=1_200_000.0, generation_tokens=9_000.0, itl_mean_s=0.03)
    assert diagnosed(pool(heavy, heavy)).healthy


def test_prompts_queue_for_compute_with_slots_and_blocks_free():
    behind = {**running(12), **queue(30, 20), **SLOW_FIRST_TOKENS}
    assert first(pool(behind, behind)) == (Layer.BATCHING, "prefill_backlog", "fleet")


def test_slow_tokens_at_a_small_batch_are_not_tunable():
    slow = {**running(3), **measured(itl_mean_s=0.4, generation_tokens=1500.0, prompt_tokens=800.0)}
    problem = diagnosed(pool(slow)).problems[0]
    assert (problem.layer, problem.cause, problem.tunable) == (Layer.EXTERNAL, "slow_tokens", False)
    assert "GPU clocks" in problem.advice


def test_the_same_with_another_profile_is_tunable():
    slow = {**running(3), **measured(itl_mean_s=0.4, generation_tokens=1500.0, prompt_tokens=800.0)}
    seen = pool(slow, execution_profile="eager")
    problem = diagnosed(seen).problems[0]
    assert (problem.layer, problem.tunable) == (Layer.EXECUTION, True)
    assert ("execution_profile", "default") in [(a.setting, a.after) for a in candidates(problem, context(seen))]


def test_a_slowdown_of_the_whole_fleet_at_the_same_load_is_external():
    slowed = {Signal.ITL_MEAN_S: Fact(0.0235, start=0.02, age_s=2.0)}
    assert diagnosed(pool(slowed, slowed, slowed)).healthy
    slowed = {Signal.ITL_MEAN_S: Fact(0.03, start=0.02, age_s=2.0)}
    problem = diagnosed(pool(slowed, slowed, slowed)).problems[0]
    assert (problem.layer, problem.cause, problem.tunable) == (Layer.EXTERNAL, "fleet_slowdown", False)
    busier = {**slowed, Signal.ARRIVED: Fact(400.0, start=140.0, age_s=2.0)}
    assert diagnosed(pool(busier, busier, busier)).healthy


def test_prefix_hits_that_drop_without_a_routing_choice_are_the_clients():
    dropped = {
        Signal.PREFIX_HIT_RATIO: Fact(0.3, start=0.6, age_s=2.0),
        Signal.PREFIX_QUERIED_TOKENS: Fact(1e6, start=5e5, age_s=2.0),
    }
    problem = diagnosed(pool(dropped)).problems[0]
    assert (problem.layer, problem.cause, problem.tunable) == (Layer.CACHE, "prefix_hits_dropped", False)
    assert "timestamp" in problem.advice


def test_the_most_reused_prefixes_and_what_evicting_them_costs_are_told():
    seen = pool({})
    seen = Snapshot(
        seen.time_s, 60.0, 13, seen.replicas, seen.fleet, prefixes={"r0": (("a1", 4096, 50), ("b2", 512, 10))}
    )
    reuse = next(one for one in diagnosed(seen).findings if one.cause == "prefix_reuse")
    assert reuse.evidence["evicting_a1_costs_tokens"] == 204_800.0


def test_scattered_prefixes_matter_when_their_copies_cost():
    seen = pool(SLOW_FIRST_TOKENS, SLOW_FIRST_TOKENS)
    for tokens, problem in ((1_000, False), (60_000, True)):
        held = {"r0": (("a1", tokens, 9),), "r1": (("a1", tokens, 8),)}
        told = Snapshot(seen.time_s, 60.0, 13, seen.replicas, seen.fleet, settings=seen.settings, prefixes=held)
        scattered = next(one for one in diagnosed(told).findings if one.cause == "prefix_scatter")
        assert (scattered in diagnosed(told).problems) is problem
        assert "prefix_aware" in [a.after for a in candidates(scattered, context(told))]


def test_barely_accepted_drafts_are_a_claim_about_the_configuration():
    drafts = {Signal.DRAFT_ACCEPT_RATIO: Fact(0.04), Signal.DRAFTED_TOKENS: Fact(900.0)}
    seen = Snapshot(None, 0.0, 1, {"r0": {}}, {}, lifetime={"r0": drafts})
    problem = diagnosed(seen).problems[0]
    assert (problem.layer, problem.evidence["claim_about"]) == (Layer.EXECUTION, "configuration")
    few = {**drafts, Signal.DRAFTED_TOKENS: Fact(40.0)}
    good = {**drafts, Signal.DRAFT_ACCEPT_RATIO: Fact(0.6)}
    for silent in (few, good):
        assert diagnosed(Snapshot(None, 0.0, 1, {"r0": {}}, {}, lifetime={"r0": silent})).healthy


def test_old_latency_since_process_start_stays_silent():
    old = {Signal.TTFT_MEAN_S: Fact(30.0), Signal.ITL_MEAN_S: Fact(2.0), Signal.FINISHED: Fact(900.0)}
    assert diagnosed(Snapshot(None, 0.0, 1, {"r0": {}}, {}, lifetime={"r0": old})).healthy


def test_an_engine_that_holds_requests_and_makes_nothing_is_stuck():
    stuck = {
        **running(0),
        **queue(5),
        **kv(0.0),
        **measured(generation_tokens=0.0, finished=0.0, prompt_tokens=0.0),
    }
    problem = diagnosed(pool(stuck)).problems[0]
    assert (problem.cause, problem.tunable) == ("engine_stalled", False)
    problem = diagnosed(pool(stuck, {}, {})).problems[0]
    assert (problem.layer, problem.cause, problem.target, problem.tunable) == (
        Layer.ROUTING,
        "lost_replica",
        "r0",
        True,
    )


@pytest.mark.parametrize("value", [2e-5, 7e-4])
def test_a_first_token_within_microseconds_is_not_believed(value):
    problem = diagnosed(pool(measured(ttft_mean_s=value))).problems[0]
    assert (problem.layer, problem.cause) == (Layer.OBSERVABILITY, "metrics_implausible")


def test_metrics_that_contradict_each_other_are_not_believed():
    problem = diagnosed(pool(measured(ttft_mean_s=8.0, e2e_mean_s=2.0, ttft_p95_s=0.5))).problems[0]
    assert problem.layer is Layer.OBSERVABILITY


def test_a_missing_essential_signal_is_never_fine():
    seen = pool({}, {})
    gone = Missing(Signal.KV_USAGE_RATIO, "r1", "not in the source", "KV pressure")
    seen = Snapshot(seen.time_s, 60.0, 13, seen.replicas, seen.fleet, missing=(gone,))
    problem = diagnosed(seen).problems[0]
    assert (problem.layer, problem.target, problem.tunable) == (Layer.OBSERVABILITY, "r1", False)


def test_stale_metrics_are_a_problem_and_halve_the_trust_in_the_rest():
    stuck = {**running(32), **queue(20), **SLOW_FIRST_TOKENS}
    fresh = next(one for one in diagnosed(pool(stuck, {})).problems if one.cause == "running_cap_binds")
    old = {signal: Fact(fact.value, fact.start, fact.peak, age_s=90.0) for signal, fact in {**CALM, **stuck}.items()}
    found = diagnosed(pool(old, {})).problems
    stale = next(one for one in found if one.cause == "metrics_stale")
    assert (stale.layer, stale.target) == (Layer.OBSERVABILITY, "r0")
    doubted = next(one for one in found if one.cause == "running_cap_binds")
    assert doubted.confidence < fresh.confidence


def test_without_a_device_signal_kv_stands_in_and_that_is_said():
    found = next(one for one in diagnosed(pool({})).findings if one.layer is Layer.MEMORY)
    assert found.severity == 0.0
    assert "KV use" in found.claim
