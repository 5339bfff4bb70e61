"""Blind in any way: no new change is made, and what is in flight can still be undone."""

import pytest
from blindness import BLIND
from conftest import Bench
from scripted_stack import cap_action, weight_action

from harness.action import Action
from harness.journal.record import State
from harness.mode import Mode
from stack.snapshot import Signal

PROTECTIVE, OPTIMISING = weight_action(target="r1"), cap_action(target="r1")


@pytest.mark.parametrize("action", [PROTECTIVE, OPTIMISING], ids=["protective", "optimising"])
@pytest.mark.parametrize("name", BLIND)
def test_no_new_change_is_made(bench: Bench, name: str, action: Action):
    bench.watch(900)
    seen = BLIND[name](bench.stack.snapshot(60.0))
    sound = bench.propose(action)
    if sound.state is State.AWAITING_APPROVAL:
        sound = bench.approve(sound)
    ended = bench.executor.apply(sound.id, mode=Mode.AUTO, snapshot=seen)
    assert ended.state is State.NOTHING_DONE, ended
    assert bench.stack.writes == []


@pytest.mark.parametrize("name", BLIND)
@pytest.mark.parametrize("point", ["settling", "probation"])
def test_what_is_in_flight_can_be_undone_and_is_not_kept(bench: Bench, name: str, point: str):
    bench.watch(900)
    bench.apply()
    bench.watch(0 if point == "settling" else 120)
    assert bench.journal.open_records()[0].state.value == point
    bench.clock.sleep(15)
    bench.executor.supervise(BLIND[name](bench.stack.snapshot(60.0)))
    ended = bench.executor.stop(by="olga") or bench.journal.ended()
    assert [record.state for record in ended] == [State.ROLLED_BACK]
    assert bench.stack.values["routing_weight", "r0"] == 100.0


@pytest.mark.parametrize(
    "name",
    [
        "stale facts",
        "NaN everywhere",
        "snapshot without time",
        "single scrape",
        "empty",
        "two sources under one name",
        "samples ahead of the window",
    ],
)
def test_a_change_that_is_never_seen_again_is_undone_by_itself(bench: Bench, name: str):
    bench.stack.itl_s = lambda values, time_s, name: 0.02 * (0.6 if values["routing_weight", "r0"] < 100 else 1.0)
    bench.watch(900)
    bench.apply()
    ended = []
    for _ in range(80):
        bench.clock.sleep(20)
        ended += bench.executor.supervise(BLIND[name](bench.stack.snapshot(60.0)))
    assert [record.state for record in ended] == [State.ROLLED_BACK]
    assert bench.stack.values["routing_weight", "r0"] == 100.0


@pytest.mark.parametrize("action", [PROTECTIVE, OPTIMISING], ids=["protective", "optimising"])
@pytest.mark.parametrize("jump_s", [-600.0, -3.0, 3.0, 3600.0])
def test_after_a_clock_jump_nothing_new_is_done_and_undoing_works(bench: Bench, jump_s: float, action: Action):
    bench.watch(900)
    bench.apply()
    bench.watch(120)
    bench.clock.time_s += jump_s
    denied = bench.propose(action)
    assert denied.state is State.DENIED
    assert "sane_clock" in {hit.rule for hit in denied.verdict.hits}
    assert [record.state for record in bench.executor.undo_open("the clock jumped")] == [State.ROLLED_BACK]
    assert bench.stack.values["routing_weight", "r0"] == 100.0


def test_a_clock_that_was_set_must_run_steadily_for_five_minutes(bench: Bench):
    bench.watch(900)
    bench.clock.time_s += 3600.0
    assert bench.propose(PROTECTIVE).state is State.DENIED
    bench.watch(280)
    assert bench.propose(PROTECTIVE).state is State.DENIED
    bench.watch(20)
    assert bench.propose(PROTECTIVE).state is State.APPROVED


def test_unsound_series_do_not_hide_what_must_be_stopped_at_once(bench: Bench):
    bench.watch(900)
    bench.apply()
    bench.stack.extra = {Signal.ERRORS: 40.0}
    ended = []
    for _ in range(3):
        bench.clock.sleep(20)
        ended += bench.executor.supervise(BLIND["two sources under one name"](bench.stack.snapshot(60.0)))
    assert [record.state for record in ended] == [State.ROLLED_BACK] and "errors" in ended[0].end_reason


def test_somebody_elses_change_of_what_we_kept_stands_us_down_for_a_while(bench: Bench):
    bench.stack.itl_s = lambda values, time_s, name: 0.02 * (0.6 if values["routing_weight", "r0"] < 100 else 1.0)
    bench.watch(900)
    bench.apply()
    assert [record.state for record in bench.watch(1200)] == [State.KEPT]
    bench.stack.values["routing_weight", "r0"] = 80.0
    writes = len(bench.stack.writes)
    assert "no_drift" in {hit.rule for hit in bench.propose(weight_action(target="r1")).verdict.hits}
    bench.watch(1800)
    assert "no_drift" not in {hit.rule for hit in bench.propose(weight_action(target="r1")).verdict.hits}
    assert len(bench.stack.writes) == writes
