"""What an approval covers: exactly what was shown, in the state it was for, until it expires, by who may."""

import json
from dataclasses import asdict, fields, replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.action import AGENT, Action, Forecast, Predicted, Trust
from harness.approval import Approval, Proposal, objection
from harness.journal.row import action_from
from harness.role import Role
from stack.catalogue import SETTINGS
from stack.layer import Layer
from stack.setting import SettingClass

EXPIRES = datetime(2027, 1, 15, 8, 0, tzinfo=UTC)
CLASS_OF = {setting.name: setting.setting_class for setting in SETTINGS}
FINITE = st.floats(allow_nan=False, allow_infinity=False)
VALUES = FINITE | st.sampled_from(["least_loaded", "round_robin"])
FORECASTS = st.builds(
    Forecast,
    FINITE,
    st.dictionaries(st.text(max_size=9), st.builds(Predicted, FINITE, FINITE, FINITE, FINITE), max_size=1),
    st.sampled_from(Trust),
    st.text(max_size=9),
)
ACTIONS = st.builds(
    Action,
    setting=st.sampled_from(sorted(CLASS_OF)),
    target=st.text(max_size=9),
    before=VALUES,
    after=VALUES,
    cause=st.text(max_size=9),
    layer=st.sampled_from(Layer),
    reason=st.text(max_size=9),
    forecast=st.none() | FORECASTS,
    requested_by=st.sampled_from([AGENT, "olga", "max"]),
    tainted=st.booleans(),
    comment=st.text(max_size=9),
)
PROPOSALS = st.builds(
    Proposal,
    id=st.integers(1, 9),
    stack=st.text(max_size=9),
    action=ACTIONS,
    state_version=st.integers(0, 9),
    expires_at=st.just(EXPIRES),
)


def same_bytes(one: Proposal, other: Proposal) -> bool:
    """Texts and numbers to the last digit; the comment, which equality of actions leaves out, too."""
    return repr(one) == repr(other)


@given(PROPOSALS, PROPOSALS, st.data())
def test_the_digest_is_the_same_for_the_same_bytes_only(one: Proposal, other: Proposal, data):
    name = data.draw(st.sampled_from([field.name for field in fields(Action)]))
    for changed in (
        other,
        replace(one, action=replace(one.action, **{name: getattr(other.action, name)})),
        replace(one, id=other.id),
        replace(one, stack=other.stack),
        replace(one, state_version=other.state_version),
        replace(one, expires_at=EXPIRES + timedelta(microseconds=1)),
    ):
        assert (changed.digest == one.digest) is same_bytes(changed, one)


@given(PROPOSALS)
def test_the_digest_outlives_being_stored(proposal: Proposal):
    stored = action_from(json.loads(json.dumps(asdict(proposal.action))))
    assert replace(proposal, action=stored).digest == proposal.digest


@given(
    PROPOSALS,
    st.sampled_from(["olga", "Olga ", "o\u200blga", "ann", AGENT]),
    st.booleans(),
    st.integers(0, 9),
    st.sampled_from(Role),
    st.integers(-2, 2),
)
def test_an_approval_covers_its_proposal_and_nothing_else(proposal, by, seen, version, role, seconds):
    digest = proposal.digest if seen else replace(proposal, id=proposal.id + 1).digest
    now = EXPIRES + timedelta(seconds=seconds)
    found = objection(Approval(by, role, digest), proposal, state_version=version, role=role, now=now)
    one_person = {"ann": "ann", AGENT: AGENT}.get(by, "olga") == proposal.action.requested_by
    covers = (
        role is not Role.VIEWER
        and seen
        and version == proposal.state_version
        and seconds < 0
        and not (CLASS_OF[proposal.action.setting] is SettingClass.C and one_person)
    )
    assert (found is None) is covers
    assert found is None or found


@pytest.mark.parametrize(
    ("by", "more", "words"),
    [
        ("eve", {"role": Role.VIEWER}, "eve is a viewer, who cannot decide"),
        ("eve", {"state_version": 8}, "state 7, found 8: it was changed or frozen meanwhile"),
        ("eve", {"now": EXPIRES}, "ended at 2027-01-15T08:00:00"),
        ("OLGA", {}, "worker_generation is class C and OLGA asked for the change, so another person must decide"),
        ("max", {}, None),
    ],
)
def test_the_reason_is_in_words(by, more, words):
    action = Action(
        setting="worker_generation",
        target="r0",
        before=0.0,
        after=1.0,
        cause="requested",
        layer=Layer.EXECUTION,
        reason="",
        requested_by="olga",
    )
    proposal = Proposal(1, "stack", action, 7, EXPIRES)
    now = {"state_version": 7, "role": Role.OPERATOR, "now": EXPIRES - timedelta(seconds=1)}
    found = objection(Approval(by, Role.OPERATOR, proposal.digest), proposal, **{**now, **more})
    assert (found is None) if words is None else words in found
