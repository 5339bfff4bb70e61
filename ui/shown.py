"""What was put before the person at this terminal: their approval covers that, and nothing else."""

from rich.console import Console

from agent.account import envelope_text
from agent.session import Pending, Session
from harness.envelope.record import EnvelopeRecord, EnvelopeState
from ui.question import show


class Shown:
    """Shows proposals and envelopes, and keeps the digest of each as it was shown."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._digests: dict[tuple[str, int], str] = {}

    def whatever_is_new(self, session: Session) -> None:
        """Show the changes that wait for a decision and were not shown yet."""
        for pending in session.pending():
            if self.digest("change", pending.id) is None:
                self.change(pending)

    def change(self, pending: Pending) -> None:
        """Show a change that waits, and how to decide on it."""
        show(self._console, pending)
        self._keep("change", pending.id, pending.digest)

    def envelope(self, record: EnvelopeRecord) -> None:
        """Show an envelope, and how to decide on it if it waits."""
        self._console.print(envelope_text(record), markup=False, highlight=False)
        if record.state is EnvelopeState.AWAITING_APPROVAL:
            self._keep("envelope", record.id, record.proposal.digest)

    def digest(self, kind: str, number: int) -> str | None:
        """Of what was shown under this number; None when nothing was."""
        return self._digests.get((kind, number))

    def _keep(self, kind: str, number: int, digest: str) -> None:
        self._digests[kind, number] = digest
        name = f"{number}" if kind == "change" else f"{kind} {number}"
        self._console.print(f"Type approve {name} or reject {name}.", markup=False)
