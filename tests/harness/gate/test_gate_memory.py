"""What the journal tells the gate of the past."""

from dataclasses import replace

from conftest import Bench
from scripted_stack import cap_action, weight_action

from harness.gate.failure_rules import refusals
from harness.journal.record import State
from stack.snapshot import Signal


def rules_hit(bench: Bench, action=None) -> set[str]:
    return {hit.rule for hit in bench.propose(action).verdict.hits}


def test_thirty_refusals_within_an_hour_pause_the_planner_and_not_people(bench: Bench):
    bench.watch(900)
    for _ in range(29):
        assert bench.propose(cap_action(after=5000.0)).state is State.DENIED
    assert "refused_proposals" not in rules_hit(bench)
    bench.propose(cap_action(after=5000.0))
    assert "refused_proposals" in rules_hit(bench)
    assert refusals(bench.executor.history(), bench.policy.pace, bench.clock.now_s()) >= 30
    assert "refused_proposals" not in rules_hit(bench, replace(weight_action(), requested_by="olga"))
    bench.clock.sleep(1801)
    assert "refused_proposals" not in rules_hit(bench)


def test_what_people_were_refused_does_not_pause_the_planner(bench: Bench):
    bench.watch(900)
    for _ in range(30):
        bench.propose(replace(cap_action(after=5000.0), requested_by="olga"))
    assert bench.executor.history().refused_s == ()


def test_a_value_that_a_hard_stop_undid_is_not_tried_again_within_a_day(bench: Bench):
    bench.watch(900)
    bench.apply()
    bench.stack.extra = {Signal.ERRORS: 40.0}
    assert [record.state for record in bench.watch(60)] == [State.ROLLED_BACK]
    bench.stack.extra = {}
    bench.clock.sleep(86_000)
    assert "failed_value" in rules_hit(bench)
    assert "failed_value" not in rules_hit(bench, weight_action(after=61.0))
    bench.clock.sleep(500)
    assert "failed_value" not in rules_hit(bench)


def test_the_budget_of_a_day_counts_what_was_done_hours_ago(bench: Bench):
    bench.watch(900)
    for n in range(20):
        assert bench.apply(weight_action(100.0 - n, 99.0 - n)).state is State.SETTLING
        bench.executor.undo_open("the test goes on")
        bench.stack.values["routing_weight", "r0"] = 99.0 - n
        bench.clock.sleep(3900)
    assert "daily_budget" in rules_hit(bench, weight_action(80.0, 70.0))


def test_what_was_written_in_part_and_taken_back_counts_as_written(bench: Bench):
    bench.watch(900)
    assert bench.lower_caps_and_fail_on_one().state is State.ROLLED_BACK
    bench.clock.sleep(10)
    assert "cooldown" in rules_hit(bench, cap_action(24.0, 32.0, target="r1"))
    assert len(bench.executor.history().rollback_times_s()) == 1
