from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import delete, update
from sqlalchemy.exc import IntegrityError
from test_bar import scores

from harness.errors import StoreError
from harness.forecast.rehearsal import Change
from harness.journal.schema import SHADOW_SCORE
from harness.journal.store import Store, open_store
from harness.shadow.record import ShadowRecord
from harness.shadow.score import Hindsight, Operator, Played, Score, Unscored

PLAYED = Played(0.9, 3.5, 1.25)
FULL = Score(
    setting="running_request_cap",
    target="replica-0",
    before=8.0,
    after=16.0,
    action_id=None,
    decided_s=100.5,
    planner="search",
    hindsight=Hindsight(PLAYED, PLAYED, PLAYED, Change("routing_policy", "fleet", "least_connections"), 7),
    operator=Operator(Change("running_request_cap", "fleet", 12.0), True, True, PLAYED, 3.25),
)


@pytest.fixture
def store(place: Path | str):
    store = open_store(place)
    yield store
    store.close()


def test_a_score_comes_back_as_it_was(store: Store):
    record = ShadowRecord(store, stack="one", planner="search")
    kept = [FULL, *scores("unscored", setting=None, start_s=200.0)]
    for score in reversed(kept):
        record.add(score)
    assert record.scores() == tuple(kept)
    assert kept[1].unscored is Unscored.DOUBTED


def test_the_longest_names_that_an_action_may_have_are_kept(store: Store):
    record = ShadowRecord(store, stack="s" * 100, planner="search")
    long = replace(FULL, setting="n" * 100, target="t" * 200)
    record.add(long)
    assert record.scores() == (long,)


def test_the_same_moment_counts_once_and_for_one_stack_and_planner(store: Store):
    record = ShadowRecord(store, stack="one", planner="search")
    for _ in range(3):
        record.add(FULL)
    assert len(record.scores()) == 1
    assert ShadowRecord(store, stack="two", planner="search").scores() == ()
    assert ShadowRecord(store, stack="one", planner="llm").scores() == ()


@pytest.mark.parametrize("statement", [update(SHADOW_SCORE).values(planner="llm"), delete(SHADOW_SCORE)])
def test_a_score_is_never_changed_or_taken_away(store: Store, statement):
    record = ShadowRecord(store, stack="one", planner="search")
    record.add(FULL)
    with pytest.raises((StoreError, IntegrityError), match="append-only"), store.begin() as connection:
        connection.execute(statement)
    assert record.scores() == (FULL,)
