"""A session on the simulated stack that moves settings inside an envelope by itself."""

from pathlib import Path

import pytest

from agent.inside import inside, worth_a_move
from agent.session import Session
from agent.settings import Settings
from agent.wiring import simulated_session
from harness.action import Action
from harness.approval import Approve
from harness.envelope.envelope import Envelope, Leave, Place, Range
from harness.envelope.file import read_envelope
from harness.envelope.record import EnvelopeRecord, EnvelopeState
from harness.mode import Mode
from harness.policy import Policy
from stack.errors import InputError
from stack.layer import Layer

WEIGHTS = Range(setting="routing_weight", low=20, high=120, step=15, every_s=15, back_after_s=120)
ENVELOPE = Envelope(ranges=(WEIGHTS,), lasts_s=900, reason="keep the replicas even", requested_by="olga")
SLOW_S = 420
WRITTEN = """
lasts_s = 900
reason = "keep the replicas even"
[[range]]
setting = "routing_weight"
low = 20
high = 120
step = 15
every_s = 15
back_after_s = 120
"""


def allowed(session: Session, envelope: Envelope = ENVELOPE) -> EnvelopeRecord:
    record = session.propose_envelope(envelope)
    assert record.state is EnvelopeState.AWAITING_APPROVAL, record.end_reason
    return session.decide_envelope(record.id, Approve("olga", record.proposal.digest))


@pytest.fixture(scope="module")
def story() -> Session:
    """A replica that is slow from minute 7 on, in approve mode; nobody is asked about a single move."""
    settings = Settings.load(mode=Mode.APPROVE, enabled=("routing_weight",))
    fault = f"slow_replica@{SLOW_S}"
    session = simulated_session(settings, traffic="steady", load=0.6, faults=(fault,), minutes=15, seed=3)
    while session.elapsed_s < 360:
        session.cycle()
    allowed(session)
    while session.elapsed_s < 720:
        session.cycle()
    return session


def test_moves_follow_the_trouble_within_two_minutes_and_keep_to_their_bounds(story: Session):
    (record,) = story.envelopes()
    assert record.state is EnvelopeState.OPEN and record.first_move_s is not None
    assert record.first_move_s - story.started_s <= SLOW_S + 120
    assert sum(place.moves for place in record.moved) >= 3
    assert all(20 <= place.last <= 120 for place in record.places)
    assert min(place.last for place in record.places) <= 60


def test_nobody_was_asked_about_a_move_and_nothing_else_was_done(story: Session):
    assert story.records() == ()
    report = story.cycle()
    assert report.stage == "inside an envelope" and report.envelope is not None


def test_a_stop_takes_all_moves_back(story: Session):
    story.stop(by="olga")
    (record,) = story.envelopes()
    assert record.state is EnvelopeState.ROLLED_BACK
    assert set(story.cycle().snapshot.settings["routing_weight"].values()) == {100.0}


def test_a_session_that_ends_leaves_no_envelope_in_force():
    settings = Settings.load(mode=Mode.AUTO)
    session = simulated_session(settings, traffic="steady", load=0.3, minutes=8, seed=3)
    while session.elapsed_s < 360:
        session.cycle()
    allowed(session)
    session.cycle()
    assert session.envelopes()[0].state is EnvelopeState.OPEN
    session.leave("enough")
    assert session.envelopes()[0].state is EnvelopeState.NOTHING_DONE


def lowered(after: float, target: str = "r0", before: float = 100.0) -> Action:
    return Action(
        setting="routing_weight",
        target=target,
        before=before,
        after=after,
        cause="replica_behind",
        layer=Layer.ROUTING,
        reason="it is slower than its peers",
    )


def test_candidates_are_cut_to_the_steps_that_are_allowed():
    places = tuple(Place(setting="routing_weight", target=name, stored=100.0, last=100.0) for name in ("r0", "r1"))
    leave = Leave(1, ENVELOPE, "olga", 1e9, places)
    actions = (lowered(50.0), lowered(75.0), lowered(0.0, before=30.0), lowered(90.0, "r1"), lowered(10.0, before=20.0))
    assert [(one.target, one.after) for one in inside(leave, actions)] == [("r0", 85.0), ("r0", 20.0), ("r1", 90.0)]
    assert inside(None, actions) == actions
    pace = Policy.load().pace
    assert worth_a_move(None, pace) is pace
    assert worth_a_move(leave, pace).slo_share_gain_min_ratio < pace.slo_share_gain_min_ratio


def test_a_file_says_what_is_asked_for(tmp_path: Path):
    path = tmp_path / "weights.toml"
    path.write_text(WRITTEN)
    assert read_envelope(path, requested_by="olga") == ENVELOPE


@pytest.mark.parametrize(
    ("written", "words"),
    [
        (WRITTEN + "[[guard]]\nsignal = 'charm'\nat_most = 1\n", "guard.0.signal"),
        (WRITTEN.replace("step", "stride"), "range.0.step"),
        (WRITTEN.replace("high = 120", "high = nan"), "range.0.high"),
        ("lasts_s = 900", "range"),
        ("lasts_s = ", "not valid TOML"),
    ],
)
def test_a_file_that_is_no_envelope_is_refused_in_one_line(tmp_path: Path, written: str, words: str):
    path = tmp_path / "weights.toml"
    path.write_text(written)
    with pytest.raises(InputError) as refused:
        read_envelope(path, requested_by="olga")
    assert words in str(refused.value) and "\n" not in str(refused.value)
