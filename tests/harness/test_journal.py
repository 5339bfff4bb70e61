from dataclasses import replace
from pathlib import Path

import pytest
from scripted_stack import ManualClock, cap_action, weight_action
from sqlalchemy.exc import IntegrityError

from harness.action import Forecast, Predicted, Trust
from harness.approval import Approve
from harness.errors import TransitionError
from harness.journal.journal import AUTO, Journal
from harness.journal.lease import Lease
from harness.journal.record import LEGAL, NEVER_ARMED, Permit, State, Step
from harness.journal.store import Store, open_store
from harness.mode import Mode
from harness.verdict import RuleResult, Ruling, Verdict

ALLOW = Verdict((RuleResult("authority", Ruling.ALLOW, "auto"),))
ASK = Verdict((RuleResult("authority", Ruling.ASK, "approve mode"),))
DENY = Verdict((RuleResult("step_size", Ruling.DENY, "too long"),))
PERMIT = Permit((Step("r0", 100.0, 60.0),), ALLOW, state_version=0)


@pytest.fixture
def wall() -> ManualClock:
    return ManualClock(1_800_000_000.0)


@pytest.fixture
def store(place: Path | str):
    store = open_store(place)
    yield store
    store.close()


@pytest.fixture
def journal(store: Store, wall: ManualClock) -> Journal:
    return led(store, wall=wall)


def led(store: Store, stack: str = "stack", wall: ManualClock | None = None) -> Journal:
    return Journal(store, stack=stack, wall=wall, lease=Lease.take(store, stack))


def propose(journal: Journal, verdict: Verdict = ALLOW, mode: Mode = Mode.AUTO, key: str | None = None):
    return journal.propose(weight_action(), verdict, mode=mode, now_s=5.0, key=key)


@pytest.mark.parametrize(
    ("verdict", "mode", "state"),
    [
        (ALLOW, Mode.AUTO, State.APPROVED),
        (ASK, Mode.AUTO, State.AWAITING_APPROVAL),
        (DENY, Mode.AUTO, State.DENIED),
        (ASK, Mode.SHADOW, State.SHADOWED),
        (ALLOW, Mode.SHADOW, State.SHADOWED),
    ],
)
def test_the_verdict_and_the_mode_decide_where_a_proposal_goes(journal: Journal, verdict, mode, state):
    record = propose(journal, verdict, mode)
    assert record.state is state and record.verdict == verdict
    assert record.decided_by == (AUTO if state is State.APPROVED else None)
    assert (record.outcome is not None) == (state in NEVER_ARMED)
    assert [e.what for e in journal.events(record.id)] == ["proposed", state.value]


def test_an_action_comes_back_as_it_went_in(journal: Journal):
    predicted = Forecast(300.0, {"slo_share": Predicted(0.7, 0.9, 0.8, 0.95)}, Trust.DOUBTED, "new here")
    action = replace(weight_action(), forecast=predicted, comment="model said so")
    record = journal.propose(action, ALLOW, mode=Mode.AUTO, now_s=5.0)
    assert record.action == action and record.action.comment == "model said so"


def test_a_key_makes_proposing_repeatable(journal: Journal):
    assert propose(journal, key="task-1").id == propose(journal, key="task-1").id
    assert len(journal.records()) == 1


def test_an_unknown_setting_is_recorded_as_denied(journal: Journal):
    action = replace(weight_action(), setting="gpu_fan")
    assert journal.propose(action, DENY, mode=Mode.AUTO, now_s=5.0).state is State.DENIED


def test_only_listed_transitions_exist(journal: Journal):
    for source in State:
        for to in State:
            if to in LEGAL.get(source, frozenset()):
                continue
            with pytest.raises(TransitionError, match="no way"):
                journal.move(1, source, to, 1.0)
    assert all(State.ARMED not in LEGAL.get(state, ()) for state in State if state is not State.APPROVED)


def test_one_change_in_flight_per_stack(journal: Journal, store: Store):
    one, two = propose(journal), propose(journal)
    journal.arm(one.id, PERMIT, 7.0)
    with pytest.raises(TransitionError, match="in flight"):
        journal.arm(two.id, PERMIT, 7.0)
    assert journal.record(two.id).state is State.APPROVED
    other = led(store, stack="other")
    other.arm(propose(other).id, PERMIT, 7.0)
    assert len(journal.open_records()) == 1


def test_log_permit_and_proposal_cannot_be_changed(journal: Journal, store: Store):
    record = propose(journal)
    journal.arm(record.id, PERMIT, 7.0)
    for statement in (
        "UPDATE event SET what = 'kept'",
        "DELETE FROM event",
        "UPDATE action SET permit = '{}'",
        "UPDATE action SET proposal = '{}'",
    ):
        with pytest.raises(IntegrityError, match=r"append-only|never changes"), store.begin() as connection:
            connection.exec_driver_sql(statement)
    assert journal.record(record.id).permit == replace(PERMIT, epoch=1)


def test_kept_needs_a_measured_improvement(journal: Journal):
    record = propose(journal)
    journal.arm(record.id, PERMIT, 7.0)
    for source, to in (
        (State.ARMED, State.APPLIED),
        (State.APPLIED, State.SETTLING),
        (State.SETTLING, State.PROBATION),
    ):
        journal.move(record.id, source, to, 8.0)
    with pytest.raises(TransitionError, match="improvement"):
        journal.end(journal.record(record.id), State.KEPT, 9.0, "looks fine", holds=60.0)


def test_history_holds_what_wrote_and_the_freeze(journal: Journal):
    propose(journal)
    journal.propose(cap_action(), DENY, mode=Mode.AUTO, now_s=5.0)
    assert journal.history(10.0).past == ()
    armed = propose(journal)
    journal.arm(armed.id, PERMIT, 7.0)
    history = journal.history(10.0, watched_s=77.0)
    assert [p.settling for p in history.past] == [True] and history.watched_s == 77.0 and history.frozen is None
    journal.freeze("fire", by="olga", now_s=11.0)
    assert journal.history(12.0).frozen == "fire"
    journal.unfreeze("out", by="olga", now_s=13.0)
    assert journal.frozen() is None
    assert [e.what for e in journal.events()][-2:] == ["freeze", "unfreeze"]
    assert all(e.at.tzinfo is not None for e in journal.events())


def test_what_is_open_or_was_touched_since_then_is_told_and_nothing_older(journal: Journal):
    def undone(written_s: float, touched_s: float) -> int:
        record = propose(journal)
        permit = replace(PERMIT, state_version=journal.state_version())
        record = journal.settle(journal.arm(record.id, permit, written_s), written_s, {"r0": 60.0})
        columns = {"touched_s": touched_s}
        record = journal.move(record.id, State.SETTLING, State.ROLLING_BACK, touched_s, **columns)
        return journal.end(record, State.ROLLED_BACK, touched_s, "undone", holds=100.0).id

    undone(10.0, 20.0)
    late = undone(10.0, 30.0)
    armed = journal.arm(propose(journal).id, replace(PERMIT, state_version=journal.state_version()), 5.0)
    propose(journal, DENY)
    assert [record.id for record in journal.wrote(30.0)] == [late, armed.id]
    assert [record.id for record in journal.ended_after(0)[1]] == [late - 1, late]
    last = journal.events()[-1].seq
    assert journal.ended_after(last) == (last, ())


def test_a_change_that_was_read_back_is_applied_and_settles_in_one_transaction(journal: Journal):
    record = propose(journal)
    journal.arm(record.id, PERMIT, 7.0)
    settling = journal.settle(journal.record(record.id), 8.0, {"r0": 60.0})
    assert settling == journal.record(record.id)
    assert (settling.state, settling.applied_s, settling.touched_s) == (State.SETTLING, 8.0, 8.0)
    assert [e.what for e in journal.events(record.id)][-3:] == ["armed", "applied", "settling"]
    with pytest.raises(TransitionError, match="somebody else moved it"):
        journal.settle(replace(settling, state=State.ARMED), 9.0, {"r0": 60.0})
    assert journal.record(record.id) == settling


def test_what_a_move_returns_is_what_is_stored(journal: Journal):
    record = propose(journal, ASK)
    assert record == journal.record(record.id)
    approved = journal.decide(record.id, Approve("olga", record.proposal.digest), now_s=6.0)
    assert approved == journal.record(record.id) and approved.state is State.APPROVED
    armed = journal.arm(record.id, PERMIT, 7)
    assert armed == journal.record(record.id) and isinstance(armed.armed_s, float)
    assert journal.end(armed, State.NOTHING_DONE, 8, "former", holds=100.0) == journal.record(record.id)
