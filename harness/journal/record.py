"""An action's row in the journal: its state, its permit, how it ended."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from harness.action import Action
from harness.approval import Approval, Proposal
from harness.gate.history import Past
from harness.outcome import HARD_STOP, Ending, Outcome, Verification
from harness.verdict import Verdict
from stack.setting import Value
from stack.snapshot import FLEET


class State(StrEnum):
    """Where an action is. Those from ARMED to PROBATION are open: something may have been written."""

    PROPOSED = "proposed"
    DENIED = "denied"
    SHADOWED = "shadowed"
    AWAITING_APPROVAL = "awaiting"
    REJECTED = "rejected"
    EXPIRED = "expired"
    APPROVED = "approved"
    ARMED = "armed"
    UNKNOWN = "unknown"
    """The reply to a write was lost; only reading back tells what the stack holds."""
    APPLIED = "applied"
    """Read back in full. Settling follows in the same transaction, so that no row is left here."""
    SETTLING = "settling"
    PROBATION = "probation"
    ROLLING_BACK = "rolling_back"
    KEPT = "kept"
    ROLLED_BACK = "rolled_back"
    NOTHING_DONE = "nothing_done"
    NEEDS_PERSON = "needs_person"


_S = State
LEGAL: Mapping[State, frozenset[State]] = {
    _S.PROPOSED: frozenset({_S.DENIED, _S.SHADOWED, _S.AWAITING_APPROVAL, _S.APPROVED}),
    _S.AWAITING_APPROVAL: frozenset({_S.APPROVED, _S.REJECTED, _S.EXPIRED}),
    _S.APPROVED: frozenset({_S.ARMED, _S.NOTHING_DONE}),
    _S.ARMED: frozenset({_S.APPLIED, _S.NOTHING_DONE, _S.UNKNOWN, _S.ROLLING_BACK, _S.NEEDS_PERSON}),
    _S.UNKNOWN: frozenset({_S.APPLIED, _S.NOTHING_DONE, _S.ROLLING_BACK, _S.NEEDS_PERSON}),
    _S.APPLIED: frozenset({_S.SETTLING, _S.ROLLING_BACK, _S.NEEDS_PERSON}),
    _S.SETTLING: frozenset({_S.PROBATION, _S.ROLLING_BACK, _S.NEEDS_PERSON}),
    _S.PROBATION: frozenset({_S.KEPT, _S.ROLLING_BACK, _S.NEEDS_PERSON}),
    _S.ROLLING_BACK: frozenset({_S.ROLLED_BACK, _S.NEEDS_PERSON}),
}
"""Legal transitions; what is not listed does not exist. Shadowed actions have no edge to ARMED."""

OPEN = frozenset({_S.ARMED, _S.UNKNOWN, _S.APPLIED, _S.SETTLING, _S.PROBATION, _S.ROLLING_BACK})
IN_FLIGHT = OPEN - {_S.PROBATION}
ENDED = frozenset(State(ending.value) for ending in Ending)
NEVER_ARMED = frozenset({_S.DENIED, _S.SHADOWED, _S.REJECTED, _S.EXPIRED})


@dataclass(frozen=True)
class Step:
    """One write of an action, and its undo: both absolute values."""

    target: str
    pre: Value
    wanted: Value


@dataclass(frozen=True)
class Permit:
    """What is committed before the first effect.

    Attributes:
        steps: the writes, with the values read back just now, which are the undo.
        verdict: the gate's second answer, on facts read just now.
        state_version: the stack's state, see JournalReader.state_version, before any of that was read.
        epoch: of the lease under which the writes are sent; the journal puts it in when it commits the permit.
    """

    steps: tuple[Step, ...]
    verdict: Verdict
    state_version: int
    epoch: int = 0


@dataclass(frozen=True, kw_only=True)
class Record:
    """One action's row. Times are stack time, except `expires_at`, which is wall time in UTC."""

    id: int
    stack: str
    action: Action
    state: State
    verdict: Verdict
    proposed_s: float
    expires_at: datetime
    state_version: int = 0
    decided_by: str | None = None
    approval: Approval | None = None
    permit: Permit | None = None
    armed_s: float | None = None
    applied_s: float | None = None
    touched_s: float | None = None
    ended_s: float | None = None
    end_reason: str = ""
    holds: Value | None = None
    verification: Verification | None = None

    @property
    def proposal(self) -> Proposal:
        """What a person is asked to decide on."""
        return Proposal(self.id, self.stack, self.action, self.state_version, self.expires_at)

    @property
    def is_open(self) -> bool:
        """Whether it is between its permit and its ending."""
        return self.state in OPEN

    @property
    def outcome(self) -> Outcome | None:
        """How it ended; None while it has not. What was never armed ended with nothing done."""
        if self.state in ENDED:
            return Outcome(Ending(self.state.value), self.end_reason, self.holds, self.verification)
        if self.state in NEVER_ARMED:
            return Outcome(Ending.NOTHING_DONE, self.end_reason or self.state.value, self.action.before)
        return None

    @property
    def past(self) -> Past:
        """The same as the gate sees it."""
        written_s = self.applied_s or self.armed_s or self.proposed_s
        return Past(
            setting=self.action.setting,
            target=self.action.target,
            setting_class=self.action.declaration.setting_class,
            before=self.action.before,
            after=self.action.after,
            written_s=written_s,
            touched_s=self.touched_s or written_s,
            settling=self.state in IN_FLIGHT,
            in_probation=self.state is State.PROBATION,
            ending=Ending(self.state.value) if self.state in ENDED else None,
            hard_stopped=self.verification is not None and self.verification.method == HARD_STOP,
        )


def held_value(values: Mapping[str, Value]) -> Value | None:
    """What several targets hold, as one value: None when they differ."""
    distinct = set(values.values())
    return distinct.pop() if len(distinct) == 1 else values.get(FLEET)
