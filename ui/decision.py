"""Decisions typed into a terminal: `approve 3`, `reject 3`, and the same for envelopes, `approve envelope 1`."""

import re
from collections.abc import Callable

from rich.console import Console

from agent.account import envelope_text, record_text
from agent.session import Session
from harness.approval import Approve, Reject
from harness.envelope.record import EnvelopeState
from harness.errors import TransitionError
from harness.journal.record import State
from ui.question import WHO
from ui.shown import Shown

_DECISION = re.compile(r"(approve|reject)\s+#?(\d{1,9})")
_ON_ENVELOPE = re.compile(r"(approve|reject)\s+envelope\s+#?(\d{1,9})")
_BEGINS_ONE = re.compile(r"(approve|reject)\b")


def decided(session: Session, console: Console, words: str, shown: Shown) -> bool:
    """Carry out `words` if they are a decision; whether they were. What was not shown yet is shown instead."""
    if on_envelope := _ON_ENVELOPE.fullmatch(words):
        _decide_envelope(session, console, on_envelope[1], int(on_envelope[2]), shown)
    elif found := _DECISION.fullmatch(words):
        _decide_change(session, console, found[1], int(found[2]), shown)
    elif _BEGINS_ONE.match(words):
        console.print(f"Type approve NUMBER or reject NUMBER. {_waiting(session)}", markup=False)
    else:
        return False
    return True


def _decide_change(session: Session, console: Console, verb: str, number: int, shown: Shown) -> None:
    record = next((one for one in session.records() if one.id == number), None)
    if record is None:
        console.print(f"There is no proposal {number}. {_waiting(session)}", markup=False)
        return
    digest = shown.digest("change", number)
    pending = next((one for one in session.pending() if one.id == number), None)
    if verb == "approve" and digest is None and pending is not None:
        shown.change(pending)
        return
    decision = Approve(WHO, digest or record.proposal.digest) if verb == "approve" else Reject(WHO)

    def decide() -> str:
        after = session.decide(number, decision)
        return record_text(after) + _next(approved=after.state is State.APPROVED)

    _say(console, decide)


def _decide_envelope(session: Session, console: Console, verb: str, number: int, shown: Shown) -> None:
    record = next((one for one in session.envelopes() if one.id == number), None)
    if record is None:
        console.print(f"There is no envelope {number}. {_waiting(session)}", markup=False)
        return
    digest = shown.digest("envelope", number)
    if verb == "approve" and digest is None and record.state is EnvelopeState.AWAITING_APPROVAL:
        shown.envelope(record)
        return
    decision = Approve(WHO, digest or record.proposal.digest) if verb == "approve" else Reject(WHO)

    def decide() -> str:
        after = session.decide_envelope(number, decision)
        return envelope_text(after) + _next(approved=after.state is EnvelopeState.APPROVED)

    _say(console, decide)


def _say(console: Console, decide: Callable[[], str]) -> None:
    """What came of a decision, or why there is none."""
    try:
        told = decide()
    except TransitionError as error:
        told = str(error)
    console.print(told, markup=False)


def _next(*, approved: bool) -> str:
    return ". It is carried out with the next cycle." if approved else ""


def _waiting(session: Session) -> str:
    asked = (one.id for one in session.envelopes() if one.state is EnvelopeState.AWAITING_APPROVAL)
    numbers = ", ".join([*(str(one.id) for one in session.pending()), *(f"envelope {number}" for number in asked)])
    return f"Waiting for a decision: {numbers}." if numbers else "None waits for a decision."
