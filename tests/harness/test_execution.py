import sqlite3

import pytest
from conftest import Bench
from scripted_stack import Crash, cap_action, failing, weight_action

from harness.errors import TransitionError
from harness.execution import Executor
from harness.gate.check import check
from harness.journal.record import Permit, Record, State, Step
from harness.mode import Mode
from harness.outcome import Ending, Measured
from stack.errors import ReadBackError, RefusedError, UnreachableError
from stack.snapshot import Signal


def slow_until_lowered(bench: Bench, *, helps: float, replica: str = "r0") -> None:
    """The fleet's token time is 20 ms, and `helps` times that while the replica's weight is lowered."""

    def itl_s(values, time_s, name):
        return 0.02 * (helps if values["routing_weight", replica] < 100 else 1.0)

    bench.stack.itl_s = itl_s


def test_a_change_that_helps_is_kept_on_measured_effect(bench: Bench):
    slow_until_lowered(bench, helps=0.7)
    bench.watch(900)
    record = bench.apply()
    assert record.state is State.SETTLING
    ended = bench.watch(1200)
    assert [r.state for r in ended] == [State.KEPT]
    outcome = ended[0].outcome
    assert outcome.ending is Ending.KEPT and outcome.holds == 60.0
    assert outcome.verification.measured is Measured.IMPROVED
    assert outcome.verification.metrics["itl_mean_s"]["ratio"] == pytest.approx(0.7, rel=0.05)
    assert bench.stack.values["routing_weight", "r0"] == 60.0


def test_a_change_that_hurts_is_undone_and_the_former_value_is_read_back(bench: Bench):
    slow_until_lowered(bench, helps=1.4)
    bench.watch(900)
    bench.apply()
    ended = bench.watch(1200)
    assert [r.state for r in ended] == [State.ROLLED_BACK]
    assert ended[0].outcome.verification.measured is Measured.WORSE
    assert ended[0].outcome.holds == 100.0
    assert bench.stack.read("routing_weight", "r0") == 100.0
    assert bench.stack.writes == [("routing_weight", "r0", 60.0), ("routing_weight", "r0", 100.0)]


def test_a_great_harm_is_undone_before_the_first_regular_look(bench: Bench):
    slow_until_lowered(bench, helps=3.0)
    bench.watch(900)
    bench.apply()
    ended = bench.watch(200)
    assert [r.state for r in ended] == [State.ROLLED_BACK]


def test_a_change_without_effect_is_rolled_back_after_the_longest_window(bench: Bench):
    bench.watch(900)
    bench.apply()
    assert bench.watch(600) == []
    ended = bench.watch(700)
    assert [r.state for r in ended] == [State.ROLLED_BACK]
    assert ended[0].outcome.verification.measured is Measured.INCONCLUSIVE


def test_blind_while_verifying_rolls_back_at_the_deadline_and_never_keeps(bench: Bench):
    slow_until_lowered(bench, helps=0.5)
    bench.watch(900)
    bench.apply()
    ended = []
    for _ in range(80):
        bench.clock.sleep(20)
        ended += bench.executor.supervise(None)
    assert [r.state for r in ended] == [State.ROLLED_BACK]
    assert ended[0].outcome.verification.measured is Measured.UNMEASURED
    assert bench.stack.values["routing_weight", "r0"] == 100.0


def test_nothing_is_written_before_the_permit_is_committed(bench: Bench):
    seen = []

    def look() -> None:
        # another connection sees only what is committed
        with sqlite3.connect(bench.path) as other:
            seen.append(other.execute("SELECT state, permit FROM action").fetchone())
        other.close()

    bench.watch(900)
    bench.stack.before_write = look
    bench.apply()
    state, permit = seen[0]
    assert state == "armed" and '"pre": 100.0' in permit and '"wanted": 60.0' in permit


@pytest.mark.parametrize("replica_holds", [99.0, 42.0])
def test_a_former_value_that_moved_meanwhile_stops_the_change(bench: Bench, replica_holds: float):
    bench.watch(900)
    record = bench.propose()
    snapshot = bench.stack.snapshot(60)
    bench.stack.values["routing_weight", "r0"] = replica_holds
    ended = bench.executor.apply(record.id, mode=Mode.AUTO, snapshot=snapshot)
    assert ended.state is State.NOTHING_DONE and bench.stack.writes == []
    assert f"{replica_holds:g}" in ended.end_reason


def test_what_somebody_sets_after_the_permit_is_not_written_over(bench: Bench):
    bench.watch(900)
    arm = bench.journal.arm

    def moved_just_after(*arguments) -> Record:
        armed = arm(*arguments)
        bench.stack.values["routing_weight", "r0"] = 33.0
        return armed

    bench.journal.arm = moved_just_after
    record = bench.apply()
    assert record.state is State.NEEDS_PERSON and "expected 100 or 60" in record.end_reason
    assert bench.stack.writes == [] and bench.stack.values["routing_weight", "r0"] == 33.0
    assert "not written to r0: expected 100, read 33" in str(bench.journal.events(record.id))


@pytest.mark.parametrize(
    ("error", "left", "state"),
    [
        (RefusedError, 100.0, State.NOTHING_DONE),
        (RefusedError, 64.0, State.NEEDS_PERSON),
        (ReadBackError, 60.0, State.SETTLING),
        (UnreachableError, 100.0, State.NOTHING_DONE),
        (UnreachableError, 60.0, State.SETTLING),
        (UnreachableError, 7.0, State.NEEDS_PERSON),
    ],
)
def test_reading_back_alone_decides_what_a_failed_write_did(bench: Bench, error, left, state):
    bench.watch(900)
    fail = failing(error, left)

    def on_write(setting, target, value):
        bench.stack.values[setting, target] = left
        fail(setting, target, value)

    bench.stack.on_write = on_write
    record = bench.apply()
    assert record.state is state
    assert len(bench.stack.writes) == 1
    assert (bench.journal.frozen() is not None) == (state is State.NEEDS_PERSON)


def test_an_undo_that_fails_needs_a_person_and_freezes(bench: Bench):
    slow_until_lowered(bench, helps=1.5)
    bench.watch(900)
    bench.apply()
    bench.stack.on_write = failing(RefusedError, 60.0)
    ended = bench.watch(1200)
    assert [r.state for r in ended] == [State.NEEDS_PERSON]
    assert bench.journal.frozen() is not None
    assert bench.propose(weight_action(target="r1")).state is State.DENIED


def test_an_undo_whose_write_is_lost_once_is_tried_again(bench: Bench):
    bench.watch(900)
    bench.apply()
    bench.stack.on_write = failing(UnreachableError)
    assert bench.executor.undo_open("stop") == ()
    bench.stack.on_write = lambda setting, target, value: None
    assert [r.state for r in bench.watch(20)] == [State.ROLLED_BACK]
    assert bench.stack.values["routing_weight", "r0"] == 100.0


def test_an_undo_waits_for_a_stack_that_does_not_answer_then_gives_up(bench: Bench):
    bench.watch(900)
    bench.apply()
    bench.watch(80)
    bench.stack.unreachable = True
    assert bench.executor.undo_open("stop") == ()
    bench.clock.sleep(30)
    assert bench.executor.supervise(None) == ()
    bench.clock.sleep(40)
    assert [r.state for r in bench.executor.supervise(None)] == [State.NEEDS_PERSON]


def test_an_undo_succeeds_once_the_stack_answers_again(bench: Bench):
    bench.watch(900)
    bench.apply()
    bench.stack.unreachable = True
    assert bench.executor.undo_open("stop") == ()
    bench.stack.unreachable = False
    bench.clock.sleep(20)
    assert [r.state for r in bench.executor.supervise(None)] == [State.ROLLED_BACK]
    assert bench.stack.values["routing_weight", "r0"] == 100.0


def test_somebody_elses_value_is_left_alone(bench: Bench):
    bench.watch(900)
    bench.apply()
    bench.stack.values["routing_weight", "r0"] = 33.0
    ended = bench.executor.undo_open("stop")
    assert [r.state for r in ended] == [State.NEEDS_PERSON]
    assert bench.stack.values["routing_weight", "r0"] == 33.0


@pytest.mark.parametrize("point", ["before_write", "after_write"])
@pytest.mark.parametrize("answering", [True, False])
def test_a_crash_recovers_to_an_ending_and_the_former_value(bench: Bench, point: str, answering: bool):
    def die() -> None:
        raise Crash

    bench.watch(900)
    setattr(bench.stack, point, die)
    with pytest.raises(Crash):
        bench.apply()
    setattr(bench.stack, point, lambda: None)
    executor = bench.restart()
    bench.stack.unreachable = not answering
    ended = list(executor.recover())
    bench.stack.unreachable = False
    if not answering:
        assert ended == []
        ended += executor.supervise(None)
        if not ended:  # resumed as applied, but there is nothing to compare with: undone
            for _ in range(100):
                bench.clock.sleep(20)
                ended += executor.supervise(bench.stack.snapshot(60))
    assert [r.state for r in ended] == [State.NOTHING_DONE if point == "before_write" else State.ROLLED_BACK]
    assert bench.stack.values["routing_weight", "r0"] == 100.0
    assert bench.journal.open_records() == ()


def test_a_crash_while_settling_or_undoing_recovers_by_undoing(bench: Bench):
    bench.watch(900)
    bench.apply()
    assert [r.state for r in bench.restart().recover()] == [State.ROLLED_BACK]
    assert bench.stack.values["routing_weight", "r0"] == 100.0

    bench.watch(900)
    bench.apply()

    def die() -> None:
        raise Crash

    bench.stack.after_write = die
    with pytest.raises(Crash):
        bench.executor.undo_open("stop")
    bench.stack.after_write = lambda: None
    assert [r.state for r in bench.restart().recover()] == [State.ROLLED_BACK]
    assert bench.stack.values["routing_weight", "r0"] == 100.0


def test_only_one_change_is_in_flight_even_past_the_gate(bench: Bench):
    bench.watch(900)
    first, second = bench.propose(weight_action(target="r1")), bench.propose(weight_action(target="r2"))
    assert bench.executor.apply(first.id, mode=Mode.AUTO).state is State.SETTLING
    refused = bench.executor.apply(second.id, mode=Mode.AUTO)
    assert refused.state is State.NOTHING_DONE and "settling" in refused.end_reason
    third = bench.propose(weight_action(target="r3"))
    assert third.state is State.DENIED
    with pytest.raises(TransitionError, match="in flight"):
        permit = Permit((Step("r3", 100.0, 60.0),), first.verdict, bench.journal.state_version())
        approved = bench.journal.propose(
            weight_action(target="r3"), type(first.verdict)(first.verdict.rules), mode=Mode.AUTO, now_s=1.0
        )
        bench.journal.arm(approved.id, permit, 1.0)


def test_undoing_a_stack_undoes_the_younger_first(bench: Bench):
    bench.watch(900)
    bench.apply()
    bench.watch(140)
    younger = bench.apply(weight_action(60.0, 40.0))
    assert younger.state is State.SETTLING, younger.end_reason
    bench.executor.undo_open("stop")
    assert [w[2] for w in bench.stack.writes] == [60.0, 40.0, 60.0, 100.0]
    assert [r.state for r in bench.journal.ended()] == [State.ROLLED_BACK, State.ROLLED_BACK]


def test_stacked_changes_of_one_setting_are_kept_together(bench: Bench):
    slow_until_lowered(bench, helps=0.6)
    bench.watch(900)
    bench.apply()
    bench.watch(140)
    assert bench.apply(weight_action(60.0, 40.0)).state is State.SETTLING
    ended = bench.watch(1200)
    assert {r.state for r in ended} == {State.KEPT} and len(ended) == 2
    assert bench.stack.values["routing_weight", "r0"] == 40.0


def test_a_per_replica_setting_of_the_fleet_is_written_everywhere_and_undone_everywhere(bench: Bench):
    bench.watch(900)
    bench.stack.extra = {}
    action = cap_action(24.0, 16.0, target="fleet")
    for replica in ("r0", "r1", "r2", "r3"):
        bench.stack.values["running_request_cap", replica] = 24.0
    assert bench.apply(action).state is State.SETTLING
    assert {v for (s, _), v in bench.stack.values.items() if s == "running_request_cap"} == {16.0}
    bench.executor.stop(by="olga")
    assert {v for (s, _), v in bench.stack.values.items() if s == "running_request_cap"} == {24.0}
    assert bench.journal.frozen() == "stopped by olga"


def test_an_undo_is_written_also_where_the_former_value_is_read(bench: Bench):
    """A replica that restarts begins with the former value, and is then given the one that was written last."""
    bench.watch(900)
    assert bench.apply().state is State.SETTLING
    (setting, target, wanted) = bench.stack.writes[-1]
    bench.stack.values[setting, target] = 100.0
    bench.executor.stop(by="olga")
    assert (setting, wanted) == ("routing_weight", 60.0)
    assert bench.stack.writes[-1] == (setting, target, 100.0)
    assert bench.journal.records()[-1].state is State.ROLLED_BACK


def test_part_of_a_fleet_wide_write_is_undone(bench: Bench):
    bench.watch(900)
    assert bench.lower_caps_and_fail_on_one().state is State.ROLLED_BACK
    assert {v for (s, _), v in bench.stack.values.items() if s == "running_request_cap"} == {24.0}


def test_shadow_and_expired_approvals_do_nothing(bench: Bench):
    bench.watch(900)
    assert bench.propose(mode=Mode.SHADOW).state is State.SHADOWED
    waiting = bench.propose(mode=Mode.APPROVE)
    assert waiting.state is State.AWAITING_APPROVAL
    with pytest.raises(TransitionError):
        bench.executor.apply(waiting.id, mode=Mode.APPROVE)
    approved = bench.propose()
    assert bench.executor.apply(approved.id, mode=Mode.SHADOW).state is State.NOTHING_DONE
    assert bench.stack.writes == []


def test_an_error_storm_after_the_change_is_a_hard_stop(bench: Bench):
    bench.watch(900)
    bench.apply()
    bench.stack.extra = {Signal.ERRORS: 40.0}
    ended = bench.watch(60)
    assert [r.state for r in ended] == [State.ROLLED_BACK]
    assert "errors" in ended[0].end_reason


@pytest.mark.parametrize(("lost", "ends"), [(False, State.SETTLING), (True, State.NOTHING_DONE)])
def test_on_a_real_stack_a_record_must_pass_when_it_is_written_too(bench: Bench, lost: bool, ends: State):
    action, record = weight_action(), {"routing_weight"}
    executor = Executor(
        bench.stack, bench.journal, bench.policy, bench.clock, bench.stack, earned=lambda: frozenset(record)
    )
    bench.executor = executor
    bench.watch(900)
    seen, now_s = bench.stack.snapshot(60.0), bench.clock.now_s()
    verdict = check(action, seen, executor.history(), bench.policy, mode=Mode.AUTO, now_s=now_s)
    proposal = bench.journal.propose(action, verdict, mode=Mode.AUTO, now_s=now_s)
    assert proposal.state is State.APPROVED
    if lost:
        record.clear()
    done = executor.apply(proposal.id, mode=Mode.AUTO)
    assert done.state is ends and bench.stack.writes == ([] if lost else [("routing_weight", "r0", 60.0)])
    assert not lost or "does not pass the bar" in str(done.end_reason)


def test_an_approval_given_for_another_state_of_the_stack_writes_nothing(bench: Bench):
    bench.watch(900)
    approved = bench.approve(bench.propose(mode=Mode.APPROVE))
    bench.journal.freeze("fire", by="olga", now_s=bench.clock.now_s())
    bench.journal.unfreeze("out", by="olga", now_s=bench.clock.now_s())
    record = bench.executor.apply(approved.id, mode=Mode.APPROVE)
    assert record.state is State.NOTHING_DONE and "changed or frozen meanwhile" in record.end_reason
    assert bench.stack.writes == []
    again = bench.approve(bench.propose(mode=Mode.APPROVE))
    assert bench.executor.apply(again.id, mode=Mode.APPROVE).state is State.SETTLING
