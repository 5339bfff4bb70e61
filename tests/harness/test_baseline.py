import pytest

from harness.baseline import POINTS_MIN, Baseline
from stack.snapshot import Fact, Signal, Snapshot


def minute(number, *, itl_s=0.010, arrived=3000.0, weight=100.0):
    fleet = {Signal.ITL_MEAN_S: itl_s, Signal.ARRIVED: arrived, Signal.PROMPT_TOKENS: 1000.0 * arrived}
    facts = {signal: Fact(value) for signal, value in fleet.items()}
    settings = {"routing_weight": {"replica-0": weight}}
    return Snapshot(60.0 * number, 60.0, 13, {"replica-0": facts}, facts, settings=settings)


def watched(*minutes):
    baseline = Baseline()
    for snapshot in minutes:
        baseline.observe(snapshot)
    return baseline


def test_the_usual_is_what_was_measured_at_the_same_work():
    baseline = watched(*[minute(n) for n in range(POINTS_MIN)])
    assert baseline.usual_token_time_s(minute(POINTS_MIN, itl_s=0.02)) == pytest.approx(0.010)
    assert baseline.usual_token_time_s(minute(POINTS_MIN, arrived=6000.0)) is None
    assert baseline.usual_token_time_s(minute(POINTS_MIN, weight=50.0)) is None


def test_too_little_is_not_usual_and_overlapping_windows_count_once():
    assert watched(*[minute(n) for n in range(POINTS_MIN - 1)]).usual_token_time_s(minute(POINTS_MIN)) is None
    often = watched(*[minute(n / 4) for n in range(4 * (POINTS_MIN - 1))])
    assert often.usual_token_time_s(minute(POINTS_MIN)) is None


def test_a_long_slowdown_does_not_become_usual_soon():
    slow_from = 40
    baseline = watched(*[minute(n, itl_s=0.010 if n < slow_from else 0.015) for n in range(2 * slow_from)])
    assert baseline.usual_token_time_s(minute(2 * slow_from, itl_s=0.015)) == pytest.approx(0.010)


def test_what_is_older_than_hours_is_forgotten():
    baseline = watched(*[minute(n) for n in range(10)], minute(1000))
    assert baseline.usual_token_time_s(minute(1001)) is None
