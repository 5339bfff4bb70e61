"""Decisions on simulated fleets whose best change is known, judged by what came after them."""

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from replayed import CAP, STARVED, Moment, change, moment

from harness.objective import Slo
from harness.policy import Policy
from harness.shadow.bar import harms
from harness.shadow.by_hand import changes_by_hand
from harness.shadow.judge import judged
from harness.shadow.neighbours import neighbours
from harness.shadow.score import Hindsight, Played, Unscored
from stack.snapshot import FLEET, Fact, Signal

POLICY = Policy.load()
WITHIN = POLICY.shadow.within_ratio
RAISE, RAISE_LITTLE, LOWER = (change(CAP, STARVED, after) for after in (20.0, 6.0, 1.0))
AWAY = change("routing_weight", 100.0, 50.0, "replica-0")


@pytest.fixture(scope="module")
def starved() -> Moment:
    return moment(starved=True)


@pytest.fixture(scope="module")
def healthy() -> Moment:
    return moment(starved=False)


def test_too_small_a_cap_raising_is_best_and_lowering_is_harmful(starved):
    best = starved.judged(RAISE, RAISE_LITTLE, LOWER, AWAY)
    assert best.hindsight is not None, best
    assert best.hindsight.best_change is not None and best.hindsight.best_change.value == RAISE.after
    assert best.hindsight.regret_ratio <= WITHIN and not harms(best.hindsight, POLICY)
    worst = starved.judged(LOWER, RAISE)
    assert worst.hindsight is not None and harms(worst.hindsight, POLICY)
    assert worst.hindsight.regret_ratio > WITHIN


def test_too_small_a_step_and_doing_nothing_miss_the_best_and_harm_nobody(starved):
    for action in (RAISE_LITTLE, None):
        found = starved.judged(action, RAISE, LOWER).hindsight
        assert found is not None and found.regret_ratio > WITHIN
        assert not harms(found, POLICY)


def test_on_a_healthy_stack_nothing_is_best(healthy):
    legal = tuple(neighbours(healthy.then, POLICY.enabled))
    assert {one.setting for one in legal} == set(POLICY.enabled)
    left = healthy.judged(None, *legal).hindsight
    assert left is not None and left.regret_ratio <= WITHIN and not harms(left, POLICY)
    starving = healthy.judged(change(CAP, 1024.0, 2.0), *legal).hindsight
    assert starving is not None and harms(starving, POLICY)


def test_the_traffic_that_came_decides_and_not_the_traffic_before(healthy):
    lull = Moment(healthy.then, healthy.simulation)
    quiet = [
        replace(
            one, fleet={**one.fleet, **{s: Fact(one.fleet[s].value / 8) for s in (Signal.ARRIVED, Signal.FINISHED)}}
        )
        for one in lull.windows()
    ]
    tight = change(CAP, 1024.0, 8.0)
    busy = judged(lull.choice(tight, RAISE), lull.windows(), Slo()).hindsight
    calm = judged(lull.choice(tight, RAISE), quiet, Slo()).hindsight
    assert busy is not None and harms(busy, POLICY)
    assert calm is not None and calm.proposed.share > busy.proposed.share


def test_what_the_operator_did_is_replayed_and_stands_beside_what_was_measured(starved):
    score = starved.judged(RAISE, LOWER, by_hand=RAISE)
    assert score.operator is not None and score.operator.agrees and score.operator.same_setting
    assert score.operator.change.target == FLEET
    replayed, measured = score.operator.played.finished_per_s, score.operator.measured_finished_per_s
    assert replayed == pytest.approx(measured, rel=0.15)
    assert score.hindsight is not None and score.hindsight.nothing.finished_per_s < 0.8 * replayed
    against = starved.judged(LOWER, RAISE, by_hand=RAISE)
    assert against.operator is not None and against.operator.same_setting and not against.operator.agrees
    elsewhere = starved.judged(AWAY, RAISE, by_hand=RAISE)
    assert elsewhere.operator is not None and not elsewhere.operator.same_setting


def test_without_sound_evidence_nothing_is_claimed(starved):
    after = starved.windows()
    choice = starved.choice(RAISE, LOWER)
    lost = [replace(one, replicas={"replica-0": one.replicas["replica-0"]}) for one in after]
    faster = [
        replace(one, fleet={**one.fleet, Signal.FINISHED: Fact(3 * one.fleet[Signal.FINISHED].value)}) for one in after
    ]
    unread = [replace(one, distributions={}) for one in after]
    held = {**after[-1].settings, "routing_weight": {"replica-0": 90.0, "replica-1": 80.0}}
    restart = change("execution_profile", "default", "eager", "replica-0")
    cases = [
        (choice, after[:1], "", Unscored.BLIND),
        (choice, lost, "", Unscored.REPLICAS),
        (choice, faster, "", Unscored.UNLIKE),
        (choice, unread, "", Unscored.DOUBTED),
        (choice, after, "only 1 of the last 5 predictions had the right sign", Unscored.DOUBTED),
        (choice, [*after[:-1], replace(after[-1], settings=held)], "", Unscored.TOUCHED),
        (starved.choice(restart, RAISE), after, "", Unscored.RESTART),
        (starved.choice(None), after, "", Unscored.NO_CHOICE),
        (starved.choice(change("batch_in_flight_cap", 1e6, 8.0), RAISE), after, "", Unscored.DOUBTED),
    ]
    for given_choice, windows, doubt, reason in cases:
        score = judged(given_choice, windows, Slo(), doubt)
        assert (score.unscored, score.hindsight) == (reason, None), score
        assert score.detail


def test_nothing_changed_by_hand_is_found_where_nothing_was(starved):
    assert changes_by_hand(starved.then, starved.windows()) == ()
    assert changes_by_hand(starved.then, []) == ()


figures = st.builds(Played, st.floats(0, 1), st.floats(0, 1e3), st.floats(1e-3, 1e3))


@given(figures, figures)
def test_doing_nothing_harms_nobody_and_the_best_misses_nothing(nothing, best):
    left = Hindsight(nothing, nothing, best, None, 1)
    assert not harms(left, POLICY)
    assert Hindsight(nothing, best, best, None, 1).regret_ratio == 0.0
    assert left.regret_ratio >= 0.0


@given(figures, st.floats(0.03, 1.0))
def test_losing_requests_is_harm_whatever_else_is_gained(nothing, lost):
    assume(nothing.share * lost > 0.01)
    worse = Played(nothing.share * (1 - lost), nothing.finished_per_s * 2, nothing.e2e_p50_s / 2)
    assert harms(Hindsight(nothing, worse, nothing, None, 1), POLICY)
