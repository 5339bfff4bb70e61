"""Envelopes as rows: the same promises on both databases."""

from dataclasses import replace
from pathlib import Path

import pytest
from envelope_bench import weights
from scripted_stack import ManualClock
from sqlalchemy import text, update
from sqlalchemy.exc import DBAPIError

from harness.approval import Approve
from harness.envelope.envelope import Guard, Place
from harness.envelope.record import EnvelopePermit, EnvelopeRecord, EnvelopeState
from harness.errors import LeaseLostError, StoreError, TransitionError
from harness.journal.audit import audit
from harness.journal.journal import Journal
from harness.journal.lease import Lease
from harness.journal.schema import ENVELOPE
from harness.journal.store import Store, open_store
from harness.mode import Mode
from harness.role import NotAllowedError, Role
from harness.verdict import RuleResult, Ruling, Verdict
from stack.snapshot import Signal

ASKED = Verdict((RuleResult("a_person", Ruling.ASK, "a person decides"),))
PLACE = Place(setting="routing_weight", target="r0", stored=100.0, last=100.0)


@pytest.fixture
def store(place: Path | str):
    store = open_store(place)
    yield store
    store.close()


def journal_of(store: Store) -> Journal:
    return Journal(store, lease=Lease.take(store, "stack", clock=ManualClock()))


def allowed(journal: Journal) -> EnvelopeRecord:
    proposed = journal.envelopes.propose(weights(Guard(Signal.TTFT_P99_S, 2.0)), ASKED, mode=Mode.AUTO, now_s=1.0)
    return journal.envelopes.decide(proposed.id, Approve("olga", proposed.proposal.digest), now_s=2.0)


def opened(journal: Journal) -> EnvelopeRecord:
    permit = EnvelopePermit((PLACE,), ASKED, journal.state_version())
    return journal.envelopes.open(allowed(journal).id, permit, 3.0)


def test_a_row_gives_back_what_was_put_in_it(store: Store):
    journal = journal_of(store)
    record = opened(journal)
    assert record.envelope == weights(Guard(Signal.TTFT_P99_S, 2.0)) and record.state is EnvelopeState.OPEN
    moved = replace(PLACE, last=90.0, unsure_of=100.0, moved_s=4.0, turn=-1, moves=1)
    record = journal.envelopes.commit_move(record, (moved,), ASKED, 4.0)
    assert record.places == (moved,) and record.first_move_s == 4.0
    assert record.permit is not None and record.permit.places == (PLACE,)
    ended = journal.envelopes.end(record, EnvelopeState.NEEDS_PERSON, 5.0, "somebody else wrote")
    assert ended.leave is None and [(p.before, p.after, p.envelope) for p in ended.past] == [(100.0, 90.0, ended.id)]
    assert audit(store).broken is None


def test_two_are_never_in_force_at_once(store: Store):
    journal = journal_of(store)
    opened(journal)
    second = allowed(journal)
    with pytest.raises(TransitionError, match="another envelope is in force"):
        journal.envelopes.open(second.id, EnvelopePermit((PLACE,), ASKED, journal.state_version()), 4.0)


def test_nothing_is_moved_while_changes_are_frozen(store: Store):
    journal = journal_of(store)
    record = opened(journal)
    journal.freeze("look first", by="otto", now_s=4.0)
    with pytest.raises(TransitionError, match="changes are frozen: look first"):
        journal.envelopes.commit_move(record, (PLACE,), ASKED, 5.0)


@pytest.mark.parametrize("column", ["proposal", "approval", "permit"])
def test_what_was_proposed_allowed_and_stored_never_changes(store: Store, column: str):
    opened(journal_of(store))
    with pytest.raises((StoreError, DBAPIError), match="never changes"), store.begin() as connection:
        connection.execute(update(ENVELOPE).values({column: {"by": "mallory"}}))


def test_a_changed_row_and_a_removed_one_are_found(store: Store):
    journal = journal_of(store)
    opened(journal)
    with store.begin() as connection:
        connection.execute(update(ENVELOPE).values(opened_s=99.0))
    assert "envelope 1 (open): its row is not what event" in str(audit(store).broken)
    with store.begin() as connection:
        connection.execute(text("DELETE FROM envelope"))
    assert "envelope 1: the log tells of it, but its row was removed" in str(audit(store).broken)


def test_without_the_lease_none_is_opened_and_a_viewer_allows_none(store: Store):
    record = allowed(journal_of(store))
    onlooker = Journal(store, role_of=lambda _: Role.VIEWER)
    with pytest.raises(LeaseLostError):
        onlooker.envelopes.open(record.id, EnvelopePermit((PLACE,), ASKED, onlooker.state_version()), 3.0)
    proposed = onlooker.envelopes.propose(weights(), ASKED, mode=Mode.AUTO, now_s=4.0)
    with pytest.raises(NotAllowedError, match="a viewer cannot decide"):
        onlooker.envelopes.decide(proposed.id, Approve("vera", proposed.proposal.digest), now_s=5.0)
