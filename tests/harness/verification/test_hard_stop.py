"""What ends a change at once, and what was as bad already."""

import pytest

from harness.policy import Policy
from harness.verification.block import Block
from harness.verification.hard_stop import hard_stop
from stack.snapshot import Fact, Signal, Snapshot

POLICY = Policy.load()


def seen(**values: float) -> Snapshot:
    fleet = {Signal(name): Fact(value, age_s=1.0) for name, value in values.items()}
    return Snapshot(1000.0, 60.0, 12, {"r1": {}}, fleet)


def before(**values: float) -> tuple[Block, ...]:
    return (Block(0.0, 60.0, {Signal(name): value for name, value in values.items()}, {}),)


LATE = seen(ttft_p95_s=9.0, arrived_requests=60.0, prompt_tokens_mean=100.0)
LOAD = {"arrived_requests": 60.0, "prompt_tokens_mean": 100.0}


def test_first_tokens_far_too_late_at_a_load_that_was_carried_before():
    assert "TTFT P95 is 9.00 s" in str(hard_stop(LATE, before(ttft_p95_s=0.5, **LOAD), ["r1"], POLICY))


@pytest.mark.parametrize("late", [{"ttft_p95_s": 5.0}, {"ttft_mean_s": 5.0}])
def test_a_promise_broken_before_is_not_held_against_the_change_however_it_was_measured(late: dict[str, float]):
    assert hard_stop(LATE, before(**late, **LOAD), ["r1"], POLICY) is None


def test_a_promise_broken_a_little_before_does_not_excuse_waits_many_times_as_long():
    assert "limit 8.00 s" in str(hard_stop(LATE, before(ttft_p95_s=2.0, **LOAD), ["r1"], POLICY))


def test_what_was_late_long_before_the_change_does_not_excuse_it():
    blocks = (*before(ttft_p95_s=20.0, **LOAD), *before(ttft_p95_s=0.5, **LOAD), *before(ttft_p95_s=0.5, **LOAD))
    assert "limit 1.5" in str(hard_stop(LATE, blocks, ["r1"], POLICY))


def test_minutes_in_which_nothing_was_answered_were_late_too():
    blocks = (*before(ttft_p95_s=20.0, **LOAD), *before(**LOAD), *before(**LOAD))
    assert hard_stop(LATE, blocks, ["r1"], POLICY) is None


@pytest.mark.parametrize(("finished", "stops"), [(5.0, True), (4.0, False)])
def test_where_too_few_requests_finish_to_tell_the_tail_their_mean_counts(finished: float, stops: bool):
    few = seen(ttft_mean_s=9.0, finished_requests=finished, arrived_requests=60.0, prompt_tokens_mean=100.0)
    stop = hard_stop(few, before(ttft_p95_s=0.5, **LOAD), ["r1"], POLICY)
    assert (stop is not None) is stops
    assert stop is None or "TTFT mean is 9.00 s" in stop


def test_a_load_never_seen_before_is_no_fault_of_the_change():
    assert hard_stop(LATE, before(arrived_requests=20.0, prompt_tokens_mean=100.0), ["r1"], POLICY) is None


def replica(name: str, start: float, **values: float) -> Snapshot:
    facts = {Signal(signal): Fact(value, start=start, age_s=1.0) for signal, value in values.items()}
    return Snapshot(1000.0, 60.0, 12, {name: facts}, {})


STUCK = {"running_requests": 0.0, "waiting_requests": 5.0, "generation_tokens": 0.0, "prompt_tokens": 0.0}


def test_a_replica_that_answers_and_does_nothing_is_stuck():
    moving = (Block(0.0, 60.0, {}, {"r1": {Signal.GENERATION_TOKENS: 900.0}}),)
    still = (Block(0.0, 60.0, {}, {"r1": {Signal.GENERATION_TOKENS: 0.0}}),)
    assert "r1 made no progress" in str(hard_stop(replica("r1", 5.0, **STUCK), moving, ["r1"], POLICY))
    assert "r1 made no progress" in str(hard_stop(replica("r1", 5.0, **STUCK), moving, ["fleet"], POLICY))
    assert hard_stop(replica("r1", 5.0, **STUCK), still, ["r1"], POLICY) is None, "it was stuck before"
    assert hard_stop(replica("r1", 0.0, **STUCK), moving, ["r1"], POLICY) is None, "the requests have just come"
    working = {**STUCK, "generation_tokens": 3.0}
    assert hard_stop(replica("r1", 5.0, **working), moving, ["r1"], POLICY) is None
    assert hard_stop(replica("r1", 5.0, **STUCK), moving, ["r2"], POLICY) is None, "another one was changed"
