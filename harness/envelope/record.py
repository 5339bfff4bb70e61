"""An envelope's row in the journal: its state, its permit, its places, how it ended."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from harness.approval import Approval, EnvelopeProposal
from harness.envelope.envelope import Envelope, Leave, Place
from harness.gate.history import Past
from harness.outcome import HARD_STOP, Ending, Verification
from harness.verdict import Verdict
from stack.catalogue import setting_named


class EnvelopeState(StrEnum):
    """Where an envelope is."""

    DENIED = "denied"
    SHADOWED = "shadowed"
    AWAITING_APPROVAL = "awaiting"
    REJECTED = "rejected"
    EXPIRED = "expired"
    APPROVED = "approved"
    OPEN = "open"
    CLOSING = "closing"
    """Its former values are being written back."""
    KEPT = "kept"
    ROLLED_BACK = "rolled_back"
    NOTHING_DONE = "nothing_done"
    NEEDS_PERSON = "needs_person"


_S = EnvelopeState
LEGAL: Mapping[EnvelopeState, frozenset[EnvelopeState]] = {
    _S.AWAITING_APPROVAL: frozenset({_S.APPROVED, _S.REJECTED, _S.EXPIRED}),
    _S.APPROVED: frozenset({_S.OPEN, _S.NOTHING_DONE}),
    _S.OPEN: frozenset({_S.OPEN, _S.CLOSING, _S.KEPT, _S.NOTHING_DONE, _S.NEEDS_PERSON}),
    _S.CLOSING: frozenset({_S.CLOSING, _S.ROLLED_BACK, _S.NEEDS_PERSON}),
}
"""Legal transitions; what is not listed does not exist. Nothing leads to OPEN but a person's approval."""

IN_FORCE = frozenset({_S.OPEN, _S.CLOSING})
ENDED = frozenset(EnvelopeState(ending.value) for ending in Ending)


@dataclass(frozen=True)
class EnvelopePermit:
    """What is committed before the first move.

    Attributes:
        places: every place that may be moved with the value read back just now, which is the undo.
        verdict: the gate's second answer, on facts read just now.
        state_version: the stack's state before any of that was read, see JournalReader.state_version.
        epoch: of the lease under which moves are sent; the journal puts it in.
    """

    places: tuple[Place, ...]
    verdict: Verdict
    state_version: int
    epoch: int = 0


@dataclass(frozen=True, kw_only=True)
class EnvelopeRecord:
    """One envelope's row. Times are stack time, except `expires_at`, which is wall time in UTC.

    Attributes:
        places: where it stands; empty until it is opened.
        first_move_s: from when on its effect can be measured.
        touched_s: when anything was last written to the stack, its undo included.
    """

    id: int
    stack: str
    envelope: Envelope
    state: EnvelopeState
    verdict: Verdict
    proposed_s: float
    expires_at: datetime
    state_version: int
    decided_by: str | None = None
    approval: Approval | None = None
    permit: EnvelopePermit | None = None
    places: tuple[Place, ...] = ()
    opened_s: float | None = None
    first_move_s: float | None = None
    touched_s: float | None = None
    ended_s: float | None = None
    end_reason: str = ""
    verification: Verification | None = None

    @property
    def proposal(self) -> EnvelopeProposal:
        """What a person is asked to decide on."""
        return EnvelopeProposal(self.id, self.stack, self.envelope, self.state_version, self.expires_at)

    @property
    def moved(self) -> tuple[Place, ...]:
        """Places that were moved at all."""
        return tuple(place for place in self.places if place.moves)

    @property
    def leave(self) -> Leave | None:
        """What it allows now; None while it is not in force."""
        if self.state not in IN_FORCE or self.opened_s is None:
            return None
        ends_s, closing = self.opened_s + self.envelope.lasts_s, self.state is EnvelopeState.CLOSING
        return Leave(self.id, self.envelope, self.decided_by or "", ends_s, self.places, closing)

    @property
    def past(self) -> tuple[Past, ...]:
        """What it did to each place, as the gate sees it: one change, however many moves."""
        stopped = self.verification is not None and self.verification.method == HARD_STOP
        return tuple(
            Past(
                setting=place.setting,
                target=place.target,
                setting_class=setting_named(place.setting).setting_class,
                before=place.stored,
                after=place.last,
                written_s=place.moved_s or 0.0,
                touched_s=max(place.moved_s or 0.0, self.touched_s or 0.0) if self.ended_s else place.moved_s or 0.0,
                settling=self.state is EnvelopeState.CLOSING,
                ending=Ending(self.state.value) if self.state in ENDED else None,
                hard_stopped=stopped,
                envelope=self.id,
            )
            for place in self.moved
        )
