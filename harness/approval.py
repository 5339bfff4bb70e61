"""What a person is asked, what they may answer, and what an approval covers."""

import unicodedata
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import TypeAlias

from harness.action import Action
from harness.canonical import sha256_of
from harness.envelope.envelope import Envelope
from harness.role import Role
from stack.outside_text import plain
from stack.setting import SettingClass, Value


@dataclass(frozen=True)
class Proposal:
    """What a person is asked about: one action, in the state that the stack had, until a moment.

    Attributes:
        id: of the action's row.
        state_version: the stack's state when it was proposed, see JournalReader.state_version.
        expires_at: wall time, UTC, from which on no approval covers it any more.
    """

    id: int
    stack: str
    action: Action
    state_version: int
    expires_at: datetime

    @property
    def digest(self) -> str:
        """The same for the same proposal, to the last byte, and another one for any other."""
        return sha256_of(asdict(self))

    @property
    def others_decide(self) -> str:
        """Why whoever asked for it cannot allow it; empty when they can."""
        action = self.action
        return f"{action.setting} is class C" if action.declaration.setting_class is SettingClass.C else ""

    @property
    def requested_by(self) -> str:
        """Who asked for it."""
        return self.action.requested_by


@dataclass(frozen=True)
class EnvelopeProposal:
    """What a person is asked to allow: an envelope, in the state that the stack had, until a moment; as Proposal."""

    id: int
    stack: str
    envelope: Envelope
    state_version: int
    expires_at: datetime
    others_decide: str = ""

    @property
    def digest(self) -> str:
        """The same for the same proposal, to the last byte, and another one for any other."""
        return sha256_of(asdict(self))

    @property
    def requested_by(self) -> str:
        """Who asked for it."""
        return self.envelope.requested_by


@dataclass(frozen=True)
class Approval:
    """A person's leave for one proposal, as it was shown to them.

    Attributes:
        role: what they were when they decided.
        digest: of the proposal that they saw.
    """

    by: str
    role: Role
    digest: str


def objection(
    approval: Approval, proposal: Proposal | EnvelopeProposal, *, state_version: int, role: Role, now: datetime
) -> str | None:
    """Why an approval does not cover a proposal, in words; None when it does. Asked at the decision and at its use.

    Args:
        state_version: the stack's state now.
        role: what the approver is now.
        now: wall time, UTC.
    """
    return next(_objections(approval, proposal, state_version, role, now), None)


def _objections(
    approval: Approval, proposal: Proposal | EnvelopeProposal, state_version: int, role: Role, now: datetime
) -> Iterator[str]:
    by = approval.by
    if not role.may_decide:
        yield f"{by} is a {role}, who cannot decide; an {Role.OPERATOR} must"
    if approval.digest != proposal.digest:
        yield f"what {by} was shown is not what is proposed, to the last byte; it must be decided on anew"
    if proposal.state_version != state_version:
        was = f"it was proposed for the stack's state {proposal.state_version}, found {state_version}"
        yield f"{was}: it was changed or frozen meanwhile"
    if now >= proposal.expires_at:
        yield f"the time to decide and to act ended at {proposal.expires_at.isoformat()}"
    if proposal.others_decide and _person(by) == _person(proposal.requested_by):
        yield f"{proposal.others_decide} and {by} asked for the change, so another person must decide"


def _person(name: str) -> str:
    """A name without what makes one person look like two."""
    return unicodedata.normalize("NFKC", plain(name)).casefold().strip()


@dataclass(frozen=True)
class Approve:
    """Do exactly what was shown.

    Attributes:
        digest: of the proposal that was shown.
    """

    by: str
    digest: str


@dataclass(frozen=True)
class Edit:
    """Do it with another value: a new proposal, which goes back to the gate.

    Attributes:
        digest: of the proposal that was shown.
    """

    by: str
    digest: str
    after: Value

    def of(self, proposed: Action) -> Action:
        """The change that replaces `proposed`; its forecast was for another value."""
        return replace(proposed, after=self.after, requested_by=self.by, forecast=None)


@dataclass(frozen=True)
class Reject:
    """Do not do it."""

    by: str
    reason: str = ""


Decision: TypeAlias = Approve | Edit | Reject
