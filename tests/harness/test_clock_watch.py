"""A clock that somebody sets is told from one that runs, however far apart the looks are."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted_stack import ManualClock

from harness.execution.clock_watch import ClockWatch

STEP_MAX_S = 2.0
PASSING = st.floats(0.0, 1e5)
SMALL = st.floats(-1.9, 1.9)
LARGE = st.one_of(st.floats(2.1, 1e7), st.floats(-1e7, -2.1))


@given(st.lists(st.tuples(PASSING, SMALL)))
def test_a_clock_that_runs_is_never_taken_for_one_that_was_set(steps: list[tuple[float, float]]):
    clock = ManualClock()
    watch = ClockWatch(clock, STEP_MAX_S)
    for seconds, step_s in steps:
        clock.sleep(seconds)
        clock.time_s += step_s
        assert watch.look() == math.inf


@given(st.lists(st.tuples(PASSING, SMALL)), LARGE, st.lists(PASSING))
def test_since_it_was_set_is_counted_in_seconds_that_nobody_can_set(
    before: list[tuple[float, float]], step_s: float, after: list[float]
):
    clock = ManualClock()
    watch = ClockWatch(clock, STEP_MAX_S)
    for seconds, small_s in before:
        clock.sleep(seconds)
        clock.time_s += small_s
        watch.look()
    clock.time_s += step_s
    assert watch.look() == 0.0
    for seconds in after:
        clock.sleep(seconds)
        watch.look()
    assert watch.look() == pytest.approx(sum(after), abs=1e-3)
