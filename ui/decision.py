"""Decisions typed into a terminal: `approve 3`, `reject 3`, and the same for envelopes, `approve envelope 1`."""

import re

from rich.console import Console

from agent.account import envelope_text, record_text
from agent.session import Session
from harness.approval import Approve, Reject
from harness.errors import TransitionError
from ui.question import WHO

_DECISION = re.compile(r"(approve|reject)\s+#?(\d+)")
_ON_ENVELOPE = re.compile(r"(approve|reject)\s+envelope\s+#?(\d+)")
_BEGINS_ONE = re.compile(r"(approve|reject)\b")


def decided(session: Session, console: Console, words: str) -> bool:
    """Carry out `words` if they are a decision; whether they were."""
    if on_envelope := _ON_ENVELOPE.fullmatch(words):
        _decide_envelope(session, console, on_envelope[1], int(on_envelope[2]))
        return True
    found = _DECISION.fullmatch(words)
    if found is None:
        return _explained(session, console, words)
    record = next((one for one in session.records() if one.id == int(found[2])), None)
    if record is None:
        console.print(f"There is no proposal {found[2]}. {_waiting(session)}", markup=False)
        return True
    decision = Approve(WHO, record.proposal.digest) if found[1] == "approve" else Reject(WHO)
    try:
        record = session.decide(record.id, decision)
    except TransitionError as error:
        console.print(str(error), markup=False)
    else:
        console.print(f"{record_text(record)}. It is carried out with the next cycle.", markup=False)
    return True


def _decide_envelope(session: Session, console: Console, verb: str, number: int) -> None:
    record = next((one for one in session.envelopes() if one.id == number), None)
    if record is None:
        console.print(f"There is no envelope {number}.", markup=False)
        return
    decision = Approve(WHO, record.proposal.digest) if verb == "approve" else Reject(WHO)
    try:
        record = session.decide_envelope(number, decision)
    except TransitionError as error:
        console.print(str(error), markup=False)
    else:
        opened = ". It is opened with the next cycle." if verb == "approve" else ""
        console.print(f"{envelope_text(record)}{opened}", markup=False)


def _explained(session: Session, console: Console, words: str) -> bool:
    """Whether `words` begin a decision that says not of what; then how one is typed."""
    if _BEGINS_ONE.match(words) is None:
        return False
    console.print(f"Type approve NUMBER or reject NUMBER. {_waiting(session)}", markup=False)
    return True


def _waiting(session: Session) -> str:
    numbers = ", ".join(str(pending.id) for pending in session.pending())
    return f"Waiting for a decision: {numbers}." if numbers else "None waits for a decision."
