from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.policy import Policy
from harness.shadow.bar import last_harm_s, passed, standing
from harness.shadow.score import Hindsight, Played, Score, Unscored

POLICY = Policy.load()
BAR = POLICY.shadow
CAP, WEIGHT = "running_request_cap", "routing_weight"
NOTHING = Played(0.90, 10.0, 2.0)
BEST = Played(0.96, 10.0, 2.0)
OUTCOMES = {"good": BEST, "missed": NOTHING, "harmful": Played(0.80, 10.0, 2.0)}


def scores(*kinds: str, setting: str | None = CAP, start_s: float = 0.0) -> list[Score]:
    return [_score(kind, setting, start_s + place) for place, kind in enumerate(kinds)]


def _score(kind: str, setting: str | None, decided_s: float) -> Score:
    score = Score(
        setting=setting,
        target=None if setting is None else "fleet",
        before=None if setting is None else 8.0,
        after=None if setting is None else 16.0,
        action_id=None,
        decided_s=decided_s,
        planner="search",
    )
    if kind == "unscored":
        return replace(score, unscored=Unscored.DOUBTED, detail="the load is not steady")
    return replace(score, hindsight=Hindsight(NOTHING, OUTCOMES[kind], BEST, None, 3))


def test_fifty_good_decisions_pass_and_one_fewer_does_not():
    assert standing(CAP, scores(*["good"] * 50), POLICY).passed
    short = standing(CAP, scores(*["good"] * 49), POLICY)
    assert not short.passed
    assert short.missing == ("1 more scored decisions (49 of 50)",)


def test_nine_of_ten_must_be_within_the_bar():
    assert standing(CAP, scores(*["good"] * 45, *["missed"] * 5), POLICY).passed
    short = standing(CAP, scores(*["good"] * 44, *["missed"] * 6), POLICY)
    assert not short.passed and "44 of 50 decisions (88%)" in short.missing[0]


def test_one_harmful_decision_fails_until_it_is_not_among_the_newest_any_more():
    later = standing(CAP, scores("harmful", *["good"] * 49), POLICY)
    assert not later.passed and later.harmful == 1
    assert standing(CAP, scores("harmful", *["good"] * 50), POLICY).passed
    assert not standing(CAP, scores(*["good"] * 50, "harmful"), POLICY).passed


def test_a_rollback_for_harm_takes_what_was_earned_before_it():
    record = scores(*["good"] * 60)
    assert standing(CAP, record, POLICY, harmed_s=9.0).passed
    lost = standing(CAP, record, POLICY, harmed_s=10.0)
    assert not lost.passed and lost.counted == 49


def test_decisions_to_change_nothing_and_other_settings_promote_nobody():
    record = [*scores(*["good"] * 60, setting=None), *scores(*["good"] * 49)]
    assert passed(record, POLICY, ()) == frozenset()
    assert not standing(None, record, POLICY).passed
    record += scores(*["good"] * 50, setting=WEIGHT)
    assert passed(record, POLICY, ()) == {WEIGHT}


@pytest.mark.parametrize("planted", [0, 1, 17])
def test_the_numbers_are_the_policys(planted):
    few = POLICY.model_copy(update={"shadow": BAR.model_copy(update={"decisions_min": 3, "harmful_max": planted})})
    found = standing(CAP, scores("good", "good", "harmful"), few)
    assert (found.harmful <= planted) is all("harmful" not in line for line in found.missing)


@given(st.lists(st.sampled_from(["good", "missed", "harmful", "unscored"]), max_size=120))
def test_the_bar_is_what_it_says(kinds):
    found = standing(CAP, scores(*kinds), POLICY)
    newest = [kind for kind in kinds if kind != "unscored"][-50:]
    wanted = len(newest) == 50 and newest.count("good") >= 45 and "harmful" not in newest
    assert found.passed is wanted
    assert bool(found.missing) is not wanted
    assert found.unscored.get(Unscored.DOUBTED, 0) == kinds.count("unscored")
    assert (found.decided, found.scored) == (len(kinds), len(kinds) - kinds.count("unscored"))


@given(st.lists(st.sampled_from(["good", "missed", "harmful"]), min_size=50, max_size=80), st.integers(0, 80))
def test_what_has_no_score_neither_helps_nor_hurts(kinds, place):
    record = scores(*kinds)
    with_gap = [*record[:place], *scores("unscored", start_s=0.5 + place), *record[place:]]
    assert standing(CAP, record, POLICY).passed is standing(CAP, with_gap, POLICY).passed


def test_nothing_that_ended_is_no_harm():
    assert last_harm_s(()) == {}
