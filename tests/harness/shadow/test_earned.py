"""What is kept up to date must be what the whole record says, whatever was added in between."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from replayed import change
from test_bar import APART_S, CAP, POLICY, WEIGHT, scores

from harness.journal.journal import Journal
from harness.journal.lease import Lease
from harness.journal.record import Permit, State, Step
from harness.journal.store import Store, open_store
from harness.mode import Mode
from harness.outcome import Measured, Verification
from harness.shadow.bar import last_harm_s, passed
from harness.shadow.earned import Earned
from harness.shadow.record import ShadowRecord
from harness.verdict import RuleResult, Ruling, Verdict

ALLOW = Verdict((RuleResult("authority", Ruling.ALLOW, "auto"),))
Add = Callable[["Stack"], None]


class Stack:
    """A stack with a shadow record, on which changes are made and undone too."""

    def __init__(self, store: Store, name: str = "one") -> None:
        self.record = ShadowRecord(store, stack=name, planner="search")
        self.journal = Journal(store, stack=name, lease=Lease.take(store, name))

    def decide(self, *kinds: str, setting: str = CAP, start: int = 0) -> None:
        for score in scores(*kinds, setting=setting, start_s=start * APART_S):
            self.record.add(score)

    def undo(self, measured: Measured, setting: str, now_s: float) -> None:
        """A change that is made, and undone for what was measured."""
        journal, action = self.journal, change(setting, 8.0, 16.0)
        record = journal.propose(action, ALLOW, mode=Mode.AUTO, now_s=now_s)
        permit = Permit((Step("fleet", 8.0, 16.0),), ALLOW, journal.state_version())
        record = journal.settle(journal.arm(record.id, permit, now_s), now_s, {"fleet": 16.0})
        record = journal.move(record.id, record.state, State.ROLLING_BACK, now_s, touched_s=now_s)
        verdict = Verification(measured, "as measured")
        journal.end(record, State.ROLLED_BACK, now_s, "undone", holds=8.0, verification=verdict)

    def all_of_it(self) -> frozenset[str]:
        """The answer from everything, read anew."""
        return passed(self.record.scores(), POLICY, last_harm_s(self.journal.ended()))


@pytest.fixture
def store(place: Path | str) -> Iterator[Store]:
    store = open_store(place)
    yield store
    store.close()


def test_what_is_added_counts_at_the_next_look_and_harm_takes_it_away(store: Store):
    stack = Stack(store)
    earned = Earned(stack.record, stack.journal, POLICY)
    assert earned() == frozenset()
    stack.decide(*["good"] * 49)
    assert earned() == frozenset()
    stack.decide("good", start=49)
    assert earned() == {CAP} == Earned(stack.record, stack.journal, POLICY)()
    stack.undo(Measured.INCONCLUSIVE, CAP, 60 * APART_S)
    assert earned() == {CAP}
    stack.undo(Measured.WORSE, CAP, 60 * APART_S)
    assert earned() == frozenset() == Earned(stack.record, stack.journal, POLICY)()


def test_what_happened_on_another_stack_of_the_store_is_not_asked(store: Store):
    stack, other = Stack(store), Stack(store, "other")
    earned = Earned(stack.record, stack.journal, POLICY)
    stack.decide(*["good"] * 50)
    other.undo(Measured.WORSE, CAP, 60 * APART_S)
    other.decide(*["good"] * 50, setting=WEIGHT)
    assert earned() == {CAP}


def decisions(kind: str, setting: str, start: int, count: int) -> Add:
    return lambda stack: stack.decide(*[kind] * count, setting=setting, start=start)


def undone(measured: Measured, setting: str, place: int) -> Add:
    return lambda stack: stack.undo(measured, setting, place * APART_S)


SETTINGS = st.sampled_from([CAP, WEIGHT])
ADDED = st.one_of(
    st.builds(
        decisions,
        st.sampled_from(["good", "missed", "harmful", "unscored"]),
        SETTINGS,
        st.integers(0, 200),
        st.sampled_from([1, 5, 50]),
    ),
    st.builds(undone, st.sampled_from(Measured), SETTINGS, st.integers(0, 200)),
)


@settings(max_examples=30, deadline=None)
@given(st.lists(ADDED, max_size=8))
def test_it_is_what_the_whole_record_says(added: list[Add]):
    store = open_store()
    stack = Stack(store)
    earned = Earned(stack.record, stack.journal, POLICY)
    for add in added:
        add(stack)
        assert earned() == stack.all_of_it()
    store.close()
