"""Decisions typed into a terminal: `approve 3`, `reject 3`."""

import re

from rich.console import Console

from agent.account import record_text
from agent.session import Session
from harness.approval import Approve, Reject
from harness.errors import TransitionError
from ui.question import WHO

_DECISION = re.compile(r"(approve|reject)\s+#?(\d+)")


def decided(session: Session, console: Console, words: str) -> bool:
    """Carry out `words` if they are a decision; whether they were."""
    found = _DECISION.fullmatch(words)
    if found is None:
        return False
    decision = Approve(by=WHO) if found[1] == "approve" else Reject(by=WHO)
    try:
        record = session.decide(int(found[2]), decision)
    except TransitionError as error:
        console.print(str(error), markup=False)
    else:
        console.print(f"{record_text(record)}. It is carried out with the next cycle.", markup=False)
    return True
