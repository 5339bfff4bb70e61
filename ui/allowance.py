"""Envelopes at a terminal: asked for by a file, or allowed by whoever starts a command with one."""

from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from agent.account import allowance_text, envelope_text
from agent.quoting import quoted
from agent.session import Session
from harness.approval import Approve
from harness.envelope.envelope import Envelope
from harness.envelope.file import read_envelope
from harness.envelope.record import EnvelopeState
from harness.verdict import Ruling, Verdict
from stack.errors import InputError
from ui.question import WHO
from ui.shown import Shown

WHY_NOT_MAX = 1000


def ask_for(session: Session, console: Console, path: Path, shown: Shown) -> None:
    """Put the envelope in a file before the gate, and say how to allow it."""
    try:
        record = session.propose_envelope(read_envelope(path, requested_by=WHO))
    except InputError as error:
        console.print(str(error), markup=False)
        return
    shown.envelope(record)


@dataclass
class Allowance:
    """An envelope that is proposed and approved once, as soon as the gate has no objection.

    Attributes:
        why_not: what the gate said when it was last asked.
        denied_by: the rules that said it.
    """

    envelope: Envelope
    given: int | None = None
    why_not: str = "the gate was not asked"
    denied_by: frozenset[str] = frozenset()

    def give(self, session: Session) -> str:
        """Propose and approve it, unless it was given or the gate denies it now; what is new about that, or nothing."""
        if self.given is not None:
            return ""
        verdict = session.check_envelope(self.envelope)
        if verdict.ruling is Ruling.DENY:
            return self._not_yet(verdict)
        record = session.propose_envelope(self.envelope)
        self.given = record.id
        if record.state is EnvelopeState.AWAITING_APPROVAL:
            record = session.decide_envelope(record.id, Approve(WHO, record.proposal.digest))
        return envelope_text(record)

    def _not_yet(self, verdict: Verdict) -> str:
        """Why, whenever other rules deny it than before: the figures of the same ones change in every cycle."""
        denied = [hit for hit in verdict.hits if hit.ruling is Ruling.DENY]
        self.why_not = quoted("; ".join(dict.fromkeys(hit.detail for hit in denied)), WHY_NOT_MAX)
        known, self.denied_by = self.denied_by, frozenset(hit.rule for hit in denied)
        return "" if known == self.denied_by else f"The envelope is not opened yet: {self.why_not}"

    def told(self, session: Session) -> str:
        """What became of it."""
        record = next((one for one in session.envelopes() if one.id == self.given), None)
        if record is None:
            return f"No envelope was opened ({allowance_text(self.envelope)}): {self.why_not}"
        return envelope_text(record)
