"""What becomes of an envelope: allowed, moved in, judged as a whole, kept or taken back."""

from dataclasses import replace

import pytest
from envelope_bench import LASTS_S, WATCHED_S, WEIGHTS, Enveloped, weights
from scripted_stack import REPLICAS, cap_action, failing, weight_action

from harness.approval import Approve, Reject
from harness.envelope.envelope import Guard
from harness.envelope.record import EnvelopeState
from harness.errors import ApprovalError, TransitionError
from harness.journal.audit import audit
from harness.mode import Mode
from harness.outcome import Measured
from stack.errors import RefusedError, UnreachableError
from stack.setting import Value
from stack.snapshot import FLEET, Fact, Signal


@pytest.fixture
def enveloped(bench) -> Enveloped:
    bench.watch(WATCHED_S)
    return Enveloped(bench)


def lower_to(enveloped: Enveloped, last: float) -> None:
    for value in range(100, int(last), -10):
        assert enveloped.move(float(value), value - 10.0) is None


def test_moves_that_help_as_a_whole_are_kept_at_its_end_and_not_before(enveloped: Enveloped):
    enveloped.helps(0.7)
    enveloped.open()
    lower_to(enveloped, 60.0)
    assert enveloped.watch(LASTS_S - 100) is None
    ended = enveloped.watch(200)
    assert ended is not None and ended.state is EnvelopeState.KEPT
    assert ended.verification is not None and ended.verification.measured is Measured.IMPROVED
    assert enveloped.holds() == 60.0
    assert [(place.target, place.stored, place.last, place.moves) for place in ended.moved] == [("r0", 100, 60, 4)]


@pytest.mark.parametrize("factor", [1.0, 1.4, 3.0])
def test_moves_that_do_not_help_as_a_whole_are_taken_back_to_the_stored_values(enveloped: Enveloped, factor: float):
    enveloped.helps(factor)
    enveloped.open()
    lower_to(enveloped, 60.0)
    ended = enveloped.watch(LASTS_S + 60)
    assert ended is not None and ended.state is EnvelopeState.ROLLED_BACK
    assert enveloped.holds() == 100.0
    assert enveloped.bench.stack.writes[-1] == ("routing_weight", "r0", 100.0)


def test_one_in_which_nothing_was_moved_ends_with_nothing_done(enveloped: Enveloped):
    enveloped.open()
    ended = enveloped.watch(LASTS_S + 60)
    assert ended is not None and ended.state is EnvelopeState.NOTHING_DONE
    assert enveloped.bench.stack.writes == []


def test_blind_takes_the_former_values_back_within_its_age_limit(enveloped: Enveloped):
    enveloped.helps(0.7)
    enveloped.open()
    lower_to(enveloped, 80.0)
    assert enveloped.watch(60) is None
    assert enveloped.watch(30, cycle_s=5, blind=True) is None
    ended = enveloped.watch(5, cycle_s=5, blind=True)
    assert ended is not None and ended.state is EnvelopeState.ROLLED_BACK and "blind" in ended.end_reason
    assert enveloped.holds() == 100.0


def test_a_stop_takes_the_former_values_back_and_nothing_is_moved_after_it(enveloped: Enveloped):
    enveloped.open()
    lower_to(enveloped, 80.0)
    enveloped.bench.executor.stop(by="olga")
    assert enveloped.holds() == 100.0
    assert enveloped.bench.journal.envelopes.envelope(1).state is EnvelopeState.ROLLED_BACK
    assert "no envelope" in str(enveloped.move(100.0, 90.0))


def test_a_broken_guard_ends_it_when_it_is_seen_twice(enveloped: Enveloped):
    enveloped.open(weights(Guard(Signal.TTFT_P99_S, 1.0)))
    lower_to(enveloped, 90.0)
    enveloped.bench.stack.extra[Signal.TTFT_P99_S] = 1.5
    assert enveloped.watch(20) is None
    ended = enveloped.watch(20)
    assert ended is not None and ended.state is EnvelopeState.ROLLED_BACK and "its guard 1" in ended.end_reason


def test_a_guard_that_is_not_measured_any_more_ends_it_within_the_age_limit(enveloped: Enveloped):
    enveloped.open(weights(Guard(Signal.TTFT_P99_S, 1.0)))
    lower_to(enveloped, 90.0)
    assert enveloped.watch(5, cycle_s=5) is None
    facts = enveloped.bench.stack._facts

    def without(itl_s: float, finished: float, name: str) -> dict[Signal, Fact]:
        found = facts(itl_s, finished, name)
        return {signal: fact for signal, fact in found.items() if signal is not Signal.TTFT_P99_S}

    enveloped.bench.stack._facts = without
    assert enveloped.watch(30, cycle_s=5) is None
    ended = enveloped.watch(5, cycle_s=5)
    assert ended is not None and "unseen for 35 s" in ended.end_reason and enveloped.holds() == 100.0


def test_a_clock_that_is_set_takes_it_back_for_its_end_means_nothing_any_more(enveloped: Enveloped):
    enveloped.open()
    lower_to(enveloped, 80.0)
    assert enveloped.watch(20) is None
    enveloped.bench.clock.time_s -= 3600.0
    ended = enveloped.watch(20)
    assert ended is not None and "the clock was set" in ended.end_reason and enveloped.holds() == 100.0


def test_a_freeze_without_a_stop_takes_it_back_too(enveloped: Enveloped):
    enveloped.open()
    lower_to(enveloped, 80.0)
    enveloped.bench.journal.freeze("look first", by="otto", now_s=enveloped.bench.clock.now_s())
    ended = enveloped.watch(20)
    assert ended is not None and "look first" in ended.end_reason and enveloped.holds() == 100.0


@pytest.mark.parametrize(("what", "last"), [("freeze", "r0"), ("value", "r1")])
def test_what_happens_within_a_move_of_several_places_stops_it_there(enveloped: Enveloped, what: str, last: str):
    caps = replace(WEIGHTS, setting="running_request_cap", low=8.0, high=32.0, step=4.0)
    enveloped.open(replace(weights(), ranges=(caps,)))
    bench, stack = enveloped.bench, enveloped.bench.stack

    def at_the_first(setting: str, target: str, value: Value) -> None:
        if what == "freeze" and target == "r0":
            bench.journal.freeze("look first", by="otto", now_s=bench.clock.now_s())
        if what == "value" and target == "r0":
            stack.values["running_request_cap", "r2"] = 7.0

    stack.on_write = at_the_first
    refused = str(bench.executor.move(cap_action(16.0, 20.0, FLEET), mode=Mode.APPROVE))
    assert ("look first" if what == "freeze" else "read 7") in refused or "read back 7" in refused
    assert [write[1] for write in stack.writes if write[2] == 20.0][-1] == last
    enveloped.watch(20)
    held = [stack.values["running_request_cap", name] for name in REPLICAS]
    assert held == [16.0, 16.0, 16.0 if what == "freeze" else 7.0, 16.0]


def test_moves_of_a_slow_stack_are_as_far_apart_as_allowed(enveloped: Enveloped):
    enveloped.open()
    clock, times = enveloped.bench.clock, []

    def slowly(setting: str, target: str, value: Value) -> None:
        clock.sleep(20.0)
        times.append(clock.now_s())

    enveloped.bench.stack.on_write = slowly
    assert enveloped.move(100.0, 90.0) is None
    assert "every 5 s" in str(enveloped.move(90.0, 80.0, wait_s=4.0))
    assert enveloped.move(90.0, 80.0, wait_s=2.0) is None
    assert times[1] - times[0] >= 25


def test_it_is_not_kept_blind(enveloped: Enveloped):
    enveloped.helps(0.7)
    enveloped.open()
    lower_to(enveloped, 60.0)
    assert enveloped.watch(LASTS_S - 40) is None
    assert enveloped.watch(20, cycle_s=10, blind=True) is None
    ended = enveloped.watch(40, blind=True)
    assert ended is not None and ended.state is EnvelopeState.ROLLED_BACK and "blind" in ended.end_reason


def test_nobody_decides_on_what_was_denied_and_is_told_so(enveloped: Enveloped):
    denied = enveloped.propose(weights(lasts_s=1.0))
    with pytest.raises(TransitionError, match="to wait for a decision, found it denied: lasts 1 s"):
        enveloped.approve(denied)


def test_errors_stop_it_at_once(enveloped: Enveloped):
    enveloped.open()
    lower_to(enveloped, 90.0)
    enveloped.bench.stack.extra[Signal.ERRORS] = 60.0
    ended = enveloped.watch(60)
    assert ended is not None and ended.state is EnvelopeState.ROLLED_BACK and "errors" in ended.end_reason
    history = enveloped.bench.executor.history()
    assert [p.hard_stopped for p in history.past] == [True] and len(history.rollback_times_s()) == 1


def test_a_value_that_somebody_else_set_is_left_alone_and_a_person_is_asked(enveloped: Enveloped):
    enveloped.open()
    lower_to(enveloped, 80.0)
    enveloped.bench.stack.values["routing_weight", "r0"] = 77.0
    enveloped.bench.executor.undo_open("the session ends")
    assert enveloped.bench.journal.envelopes.envelope(1).state is EnvelopeState.NEEDS_PERSON
    assert enveloped.holds() == 77.0 and "somebody else wrote" in str(enveloped.bench.journal.frozen())


def test_a_move_that_is_refused_leaves_it_open_and_the_value_as_it_was(enveloped: Enveloped):
    enveloped.open()
    enveloped.bench.stack.on_write = failing(RefusedError)
    assert "failed" in str(enveloped.move(100.0, 90.0))
    enveloped.bench.stack.on_write = lambda setting, target, value: None
    assert enveloped.move(100.0, 90.0) is None
    assert enveloped.holds() == 90.0


def test_a_stack_that_falls_silent_after_a_move_is_taken_back_once_it_answers(enveloped: Enveloped):
    enveloped.open()
    lower_to(enveloped, 90.0)

    def fall_silent() -> None:
        enveloped.bench.stack.unreachable = True
        raise UnreachableError("the reply was lost")

    enveloped.bench.stack.after_write = fall_silent
    assert enveloped.move(90.0, 80.0) is not None
    enveloped.bench.stack.after_write = lambda: None
    assert enveloped.watch(20, blind=True) is None
    enveloped.bench.stack.unreachable = False
    ended = enveloped.watch(20)
    assert ended is not None and ended.state is EnvelopeState.ROLLED_BACK and enveloped.holds() == 100.0


def test_a_replica_that_is_silent_keeps_no_other_from_its_former_value(enveloped: Enveloped):
    enveloped.open()
    lower_to(enveloped, 90.0)
    assert enveloped.move(100.0, 90.0, "r1") is None
    stack, answer = enveloped.bench.stack, enveloped.bench.stack.read

    def read(setting: str, target: str) -> Value:
        if target == "r1":
            raise UnreachableError("r1 does not answer")
        return answer(setting, target)

    stack.read = read
    enveloped.bench.executor.undo_open("the session ends")
    assert enveloped.holds() == 100.0 and enveloped.holds("r1") == 90.0
    stack.read = answer
    ended = enveloped.watch(20)
    assert ended is not None and ended.state is EnvelopeState.ROLLED_BACK and enveloped.holds("r1") == 100.0


def test_where_somebody_else_wrote_the_other_places_get_their_former_values(enveloped: Enveloped):
    enveloped.open()
    lower_to(enveloped, 90.0)
    assert enveloped.move(100.0, 90.0, "r1") is None
    enveloped.bench.stack.values["routing_weight", "r1"] = 77.0
    enveloped.bench.executor.undo_open("the session ends")
    assert enveloped.bench.journal.envelopes.envelope(1).state is EnvelopeState.NEEDS_PERSON
    assert enveloped.holds() == 100.0 and enveloped.holds("r1") == 77.0


def test_a_stack_that_stays_silent_is_left_to_a_person(enveloped: Enveloped):
    enveloped.open()
    lower_to(enveloped, 90.0)
    enveloped.bench.stack.unreachable = True
    ended = enveloped.watch(200, blind=True)
    assert ended is not None and ended.state is EnvelopeState.NEEDS_PERSON
    assert enveloped.bench.journal.frozen() is not None


def test_it_is_opened_only_by_an_approval_of_what_was_shown(enveloped: Enveloped):
    proposed = enveloped.propose()
    envelopes, now_s = enveloped.bench.journal.envelopes, enveloped.bench.clock.now_s()
    with pytest.raises(TransitionError, match="expected it to be approved"):
        enveloped.bench.executor.open_envelope(proposed.id, mode=Mode.AUTO)
    with pytest.raises(ApprovalError, match="what olga was shown"):
        envelopes.decide(proposed.id, Approve("olga", "0" * 64), now_s=now_s)
    enveloped.approve(proposed)
    with pytest.raises(TransitionError):
        enveloped.approve(proposed)
    assert enveloped.bench.executor.open_envelope(proposed.id, mode=Mode.AUTO).state is EnvelopeState.OPEN
    with pytest.raises(TransitionError):
        enveloped.bench.executor.open_envelope(proposed.id, mode=Mode.AUTO)


def test_a_freeze_voids_what_was_proposed_before_it(enveloped: Enveloped):
    proposed, envelopes = enveloped.propose(), enveloped.bench.journal.envelopes
    now_s = enveloped.bench.clock.now_s()
    enveloped.bench.journal.freeze("look first", by="otto", now_s=now_s)
    enveloped.bench.journal.unfreeze("looked", by="otto", now_s=now_s)
    with pytest.raises(TransitionError):
        enveloped.approve(proposed)
    assert envelopes.envelope(proposed.id).state is EnvelopeState.EXPIRED


def test_rejected_it_is_never_opened(enveloped: Enveloped):
    proposed = enveloped.propose()
    rejected = enveloped.bench.journal.envelopes.decide(
        proposed.id, Reject("olga", "not today"), now_s=enveloped.bench.clock.now_s()
    )
    assert rejected.state is EnvelopeState.REJECTED and "not today" in rejected.end_reason


def test_in_shadow_it_is_recorded_and_never_opened(enveloped: Enveloped):
    shadowed = enveloped.propose(mode=Mode.SHADOW)
    assert shadowed.state is EnvelopeState.SHADOWED
    with pytest.raises(TransitionError):
        enveloped.approve(shadowed)


def test_a_restart_takes_it_back_and_what_was_allowed_before_is_not_opened(enveloped: Enveloped):
    enveloped.open()
    lower_to(enveloped, 80.0)
    enveloped.bench.restart().recover()
    envelopes = enveloped.bench.journal.envelopes
    assert envelopes.envelope(1).state is EnvelopeState.ROLLED_BACK and enveloped.holds() == 100.0
    assert enveloped.bench.executor.history().leave is None


def test_each_step_is_a_line_of_the_log(enveloped: Enveloped):
    enveloped.helps(0.7)
    enveloped.open()
    lower_to(enveloped, 80.0)
    enveloped.watch(LASTS_S + 60)
    told = [event.what for event in enveloped.bench.journal.events() if event.what.startswith("envelope")]
    moves = ["envelope_move", "envelope_moved"]
    assert told == ["envelope_awaiting", "envelope_approved", "envelope_opened", *moves, *moves, "envelope_ended"]
    assert audit(enveloped.bench.store).broken is None


def test_moves_use_up_no_budget_and_the_value_kept_is_what_the_gate_knows(enveloped: Enveloped):
    enveloped.helps(0.7)
    enveloped.open()
    lower_to(enveloped, 40.0)
    enveloped.watch(LASTS_S + 60)
    history = enveloped.bench.executor.history()
    assert list(history.since(0.0)) == [] and [p.after for p in history.past] == [40.0]
    enveloped.bench.clock.sleep(600)
    record = enveloped.bench.propose(weight_action(40.0, 50.0))
    assert not any(hit.rule in ("no_drift", "hourly_budget") for hit in record.verdict.hits)
