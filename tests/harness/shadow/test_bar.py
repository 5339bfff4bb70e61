from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from replayed import change

from harness.journal.record import Record, State
from harness.outcome import Measured, Verification
from harness.policy import Policy
from harness.shadow.bar import last_harm_s, passed, standing
from harness.shadow.score import Hindsight, Played, Score, Unscored
from harness.verdict import Verdict

POLICY = Policy.load()
BAR = POLICY.shadow
CAP, WEIGHT = "running_request_cap", "routing_weight"
NOTHING = Played(0.90, 10.0, 2.0)
BEST = Played(0.96, 10.0, 2.0)
APART_S = BAR.repeat_s
OUTCOMES = {"good": BEST, "missed": NOTHING, "harmful": Played(0.80, 10.0, 2.0)}


def scores(*kinds: str, setting: str | None = CAP, start_s: float = 0.0) -> list[Score]:
    return [_score(kind, setting, start_s + place * APART_S) for place, kind in enumerate(kinds)]


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
    assert standing(CAP, record, POLICY, harmed_s=9 * APART_S).passed
    lost = standing(CAP, record, POLICY, harmed_s=10 * APART_S)
    assert not lost.passed and lost.counted == 49


def test_the_same_change_again_and_again_is_one_decision_unless_it_harms():
    minutely = [replace(score, decided_s=60.0 * place) for place, score in enumerate(scores(*["good"] * 61))]
    found = standing(CAP, minutely, POLICY)
    assert (found.scored, found.counted, found.repeated) == (61, 2, 59)
    other = [replace(score, after=32.0) for score in minutely]
    both = sorted([*minutely, *other], key=lambda score: score.decided_s)
    assert standing(CAP, both, POLICY).counted == 4
    harmful = replace(minutely[1], hindsight=Hindsight(NOTHING, OUTCOMES["harmful"], BEST, None, 3))
    assert standing(CAP, [minutely[0], harmful, *minutely[2:]], POLICY).harmful == 1


def test_decisions_to_change_nothing_and_other_settings_promote_nobody():
    record = [*scores(*["good"] * 60, setting=None), *scores(*["good"] * 49)]
    assert passed(record, POLICY, {}) == frozenset()
    assert not standing(None, record, POLICY).passed
    record += scores(*["good"] * 50, setting=WEIGHT)
    assert passed(record, POLICY, {}) == {WEIGHT}


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
    with_gap = [*record[:place], *scores("unscored", start_s=(0.5 + place) * APART_S), *record[place:]]
    assert standing(CAP, record, POLICY).passed is standing(CAP, with_gap, POLICY).passed


def ended(state: State, measured: Measured | None, ended_s: float) -> Record:
    return Record(
        id=1,
        stack="paris",
        action=change(CAP, 8.0, 16.0),
        state=state,
        verdict=Verdict(()),
        proposed_s=0.0,
        expires_at=datetime.now(UTC),
        ended_s=ended_s,
        verification=None if measured is None else Verification(measured, "as measured"),
    )


def test_only_a_change_measured_to_be_worse_and_undone_is_harm():
    record = scores(*["good"] * 60)
    late_s = 59 * APART_S
    for state, measured in (
        (State.KEPT, Measured.IMPROVED),
        (State.ROLLED_BACK, Measured.INCONCLUSIVE),
        (State.ROLLED_BACK, None),
        (State.NOTHING_DONE, None),
    ):
        assert passed(record, POLICY, last_harm_s([ended(state, measured, late_s)])) == {CAP}
    for state in (State.ROLLED_BACK, State.NEEDS_PERSON):
        assert passed(record, POLICY, last_harm_s([ended(state, Measured.WORSE, late_s)])) == frozenset()
    first, last = (ended(State.ROLLED_BACK, Measured.WORSE, time_s) for time_s in (1.0, 2.0))
    assert last_harm_s([last, first]) == {CAP: 2.0}
