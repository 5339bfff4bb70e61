"""What persons decide is bound to what they saw and to the state it was for, and is used once."""

import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from scripted_stack import ManualClock, weight_action
from sqlalchemy.exc import IntegrityError

from harness.action import AGENT, Action
from harness.approval import Approve, Edit, Reject
from harness.errors import ApprovalError, TransitionError
from harness.journal.journal import Journal
from harness.journal.lease import Lease
from harness.journal.record import Permit, Record, State, Step
from harness.journal.store import Store, open_store
from harness.mode import Mode
from harness.outcome import Ending
from harness.role import NotAllowedError, Role
from harness.verdict import RuleResult, Ruling, Verdict

ASK = Verdict((RuleResult("authority", Ruling.ASK, "approve mode"),))
DENY = Verdict((RuleResult("step_size", Ruling.DENY, "too long"),))
MANY = 16


class Desk:
    """A journal with its clock, and who is what."""

    def __init__(self, store: Store) -> None:
        self.store, self.wall = store, ManualClock(1_800_000_000.0)
        self.roles = {"eve": Role.VIEWER}
        lease = Lease.take(store, "stack", clock=ManualClock())
        self.journal = Journal(store, wall=self.wall, lease=lease, role_of=self.role_of)

    def role_of(self, person: str) -> Role:
        return self.roles.get(person, Role.OPERATOR)

    def waiting(self, action: Action | None = None) -> Record:
        return self.journal.propose(action or weight_action(), ASK, mode=Mode.APPROVE, now_s=5.0)

    def approve(self, record: Record, by: str = "olga") -> Record:
        return self.journal.decide(record.id, Approve(by, record.proposal.digest), now_s=6.0)

    def edit(self, record: Record, by: str = "olga", verdict: Verdict = ASK) -> Record:
        return self.journal.edit(record.id, Edit(by, record.proposal.digest, 80.0), verdict, now_s=6.0)

    def arm(self, record: Record) -> None:
        permit = Permit((Step("r0", 100.0, 60.0),), ASK, self.journal.state_version())
        self.journal.arm(record.id, permit, 7.0)


@pytest.fixture
def desk(place: Path | str) -> Iterator[Desk]:
    with closing(open_store(place)) as store:
        yield Desk(store)


def restart(requested_by: str) -> Action:
    """A change of class C."""
    return replace(weight_action(0.0, 1.0), setting="worker_generation", requested_by=requested_by)


def test_a_decision_counts_once(desk: Desk):
    record = desk.waiting()
    made = desk.approve(record)
    assert (made.decided_by, made.approval.by, made.approval.role) == ("olga", "olga", Role.OPERATOR)
    assert made.approval.digest == record.proposal.digest
    for answer in (lambda: desk.approve(record, "max"), lambda: desk.edit(record, "max")):
        with pytest.raises(TransitionError, match="found it approved"):
            answer()
    with pytest.raises(TransitionError, match="found it approved"):
        desk.journal.decide(record.id, Reject("max"), now_s=6.0)


def test_a_rejection_ends_it_with_its_reason(desk: Desk):
    record = desk.journal.decide(desk.waiting().id, Reject("olga", "not now"), now_s=6.0)
    assert record.outcome.ending is Ending.NOTHING_DONE and "not now" in record.outcome.reason
    with pytest.raises(TransitionError, match="found it rejected: rejected by olga: not now"):
        desk.approve(record)


def test_what_was_shown_of_another_proposal_approves_none(desk: Desk):
    one, other = desk.waiting(), desk.waiting()
    assert one.action == other.action
    for decide in (
        lambda: desk.journal.decide(one.id, Approve("olga", other.proposal.digest), now_s=6.0),
        lambda: desk.journal.edit(one.id, Edit("olga", other.proposal.digest, 80.0), ASK, now_s=6.0),
    ):
        with pytest.raises(ApprovalError, match="what olga was shown is not what is proposed"):
            decide()
    assert desk.journal.record(one.id).state is State.AWAITING_APPROVAL and len(desk.journal.records()) == 2


def test_a_proposal_altered_in_the_store_is_not_what_was_shown(tmp_path: Path):
    with closing(open_store(tmp_path / "journal.db")) as store:
        desk = Desk(store)
        waiting, approved = desk.waiting(), desk.approve(desk.waiting())
        with store.begin() as connection:
            connection.exec_driver_sql("DROP TRIGGER action_proposal_fixed")
            connection.exec_driver_sql("UPDATE action SET proposal = replace(proposal, '60.0', '0.0')")
        assert desk.journal.record(waiting.id).action.after == 0.0
        for use, record in ((desk.approve, waiting), (desk.arm, approved)):
            with pytest.raises(ApprovalError, match="to the last byte"):
                use(record)


def test_nobody_can_approve_or_use_what_has_expired(desk: Desk):
    left, approved = desk.waiting(), desk.approve(desk.waiting())
    desk.wall.sleep(600)
    with pytest.raises(TransitionError, match="found it expired: nobody decided in time"):
        desk.approve(left)
    with pytest.raises(ApprovalError, match="the time to decide and to act ended"):
        desk.arm(approved)
    assert desk.journal.record(approved.id).state is State.APPROVED and not desk.journal.open_records()


@pytest.mark.parametrize("lifted", [False, True])
def test_an_approval_is_for_the_state_that_the_stack_had(desk: Desk, lifted: bool):
    left, approved = desk.waiting(), desk.approve(desk.waiting())
    desk.journal.freeze("fire", by="olga", now_s=7.0)
    if lifted:
        desk.journal.unfreeze("out", by="olga", now_s=8.0)
    for answer in (desk.approve, desk.edit):
        with pytest.raises(TransitionError, match="found it expired: the stack was changed or frozen"):
            answer(left)
    with pytest.raises(ApprovalError, match="changed or frozen meanwhile"):
        desk.arm(approved)
    desk.arm(desk.approve(desk.waiting()))


def test_who_cannot_decide_decides_nothing(desk: Desk):
    record = desk.waiting()
    with pytest.raises(NotAllowedError, match="a viewer cannot decide; an operator must"):
        desk.approve(record, "eve")
    with pytest.raises(NotAllowedError):
        desk.edit(record, "eve")
    with pytest.raises(NotAllowedError):
        desk.journal.decide(record.id, Reject("eve"), now_s=6.0)
    assert desk.journal.record(record.id) == record and len(desk.journal.records()) == 1


def test_who_lost_the_role_after_deciding_has_decided_nothing(desk: Desk):
    record = desk.approve(desk.waiting())
    desk.roles["olga"] = Role.VIEWER
    with pytest.raises(ApprovalError, match="olga is a viewer, who cannot decide"):
        desk.arm(record)
    desk.roles["olga"] = Role.ADMIN
    desk.arm(record)


def test_a_change_of_class_c_needs_another_person_than_who_asked(desk: Desk):
    asked = desk.waiting(restart("olga"))
    with pytest.raises(ApprovalError, match="another person must decide"):
        desk.approve(asked, "Olga")
    desk.arm(desk.approve(asked, "max"))
    assert desk.approve(desk.waiting(replace(weight_action(), requested_by="olga"))).state is State.APPROVED


def test_an_edit_is_a_new_proposal_that_the_gate_has_judged(desk: Desk):
    first = desk.waiting()
    edited = desk.edit(first)
    assert edited.state is State.APPROVED and edited.action.after == 80.0 and edited.decided_by == "olga"
    assert edited.approval.digest == edited.proposal.digest != first.proposal.digest
    assert edited.action.requested_by == "olga" and edited.action.forecast is None
    former = desk.journal.record(first.id)
    assert former.state is State.REJECTED and former.action.after == 60.0
    assert [e.what for e in desk.journal.events(edited.id)] == ["proposed", "awaiting", "approved"]
    denied = desk.edit(desk.waiting(), verdict=DENY)
    assert denied.state is State.DENIED and denied.approval is None
    with pytest.raises(TransitionError):
        desk.arm(denied)


def test_who_edits_a_change_of_class_c_asks_for_it_and_cannot_approve_it(desk: Desk):
    edited = desk.edit(desk.waiting(restart(AGENT)))
    assert edited.state is State.AWAITING_APPROVAL and edited.decided_by is None
    with pytest.raises(ApprovalError, match="another person must decide"):
        desk.approve(edited)
    assert desk.approve(edited, "max").state is State.APPROVED


def test_a_row_moved_past_the_decision_is_approved_by_nobody(desk: Desk):
    for columns in ({}, {"decided_by": "olga"}):
        record = desk.waiting()
        desk.journal.move(record.id, State.AWAITING_APPROVAL, State.APPROVED, 6.0, **columns)
        with pytest.raises(ApprovalError, match="approved by nobody"):
            desk.arm(record)


def test_an_approval_never_changes(desk: Desk):
    record = desk.approve(desk.waiting())
    with pytest.raises(IntegrityError, match="never changes"), desk.store.begin() as connection:
        connection.exec_driver_sql("UPDATE action SET approval = '{}'")
    assert desk.journal.record(record.id) == record


def test_of_sixteen_at_once_one_decides(desk: Desk, place: Path | str):
    """Each with a connection of its own, as sixteen processes have."""
    record = desk.waiting()
    stores = [open_store(place, busy_timeout_s=60.0) for _ in range(MANY)]
    answers = [
        lambda j, n: j.decide(record.id, Approve(f"user{n}", record.proposal.digest), now_s=6.0),
        lambda j, n: j.decide(record.id, Reject(f"user{n}"), now_s=6.0),
        lambda j, n: j.edit(record.id, Edit(f"user{n}", record.proposal.digest, 80.0), ASK, now_s=6.0),
    ]
    journals = [Journal(store, wall=desk.wall) for store in stores]
    won, lost = at_once(lambda n: answers[n % 3](journals[n], n).id)
    for store in stores:
        store.close()
    assert len(won) == 1 and len(lost) == MANY - 1
    assert len(desk.journal.records()) == (1 if won == [record.id] else 2)
    decided = [event for event in desk.journal.events(record.id) if event.what in ("approved", "rejected")]
    assert len(decided) == 1


def test_of_sixteen_at_once_one_uses_an_approval_and_no_replay_does(desk: Desk):
    record = desk.approve(desk.waiting())
    won, lost = at_once(lambda _n: desk.arm(record))
    assert len(won) == 1 and len(lost) == MANY - 1
    with pytest.raises(TransitionError):
        desk.arm(record)
    desk.journal.end(desk.journal.record(record.id), State.NOTHING_DONE, 8.0, "it held its value", holds=100.0)
    for replay in (lambda: desk.arm(record), lambda: desk.approve(record)):
        with pytest.raises(TransitionError):
            replay()
    assert [e.what for e in desk.journal.events(record.id)].count("armed") == 1


def at_once(call: Callable[[int], object]) -> tuple[list[object], list[TransitionError]]:
    """What sixteen threads got that begin together, and what the others were told."""
    start, won, lost = threading.Barrier(MANY), [], []

    def run(number: int) -> None:
        start.wait()
        try:
            won.append(call(number))
        except TransitionError as error:
            lost.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(MANY)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return won, lost
