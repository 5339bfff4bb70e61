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
