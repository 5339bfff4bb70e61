"""What persons decide on proposals: once, on what they were shown, in the state of the stack it was proposed for."""

from sqlalchemy import Connection

from harness.approval import Approval, Approve, Edit, Reject, objection
from harness.errors import ApprovalError, TransitionError
from harness.journal.lease import Lease
from harness.journal.proposals import Proposals
from harness.journal.record import Record, State
from harness.journal.row import approval_row
from harness.journal.store import Store
from harness.role import NotAllowedError, Role, RoleOf, at_the_terminal
from harness.verdict import Ruling, Verdict
from stack.clock import Clock


class Decisions(Proposals):
    """Answers to what waits for a person.

    Args:
        role_of: tells what a person is now: it is asked when they decide, and again when their approval is used.
    """

    def __init__(
        self,
        store: Store,
        *,
        stack: str = "stack",
        wall: Clock | None = None,
        lease: Lease | None = None,
        role_of: RoleOf = at_the_terminal,
    ) -> None:
        super().__init__(store, stack=stack, wall=wall, lease=lease)
        self._role_of = role_of

    def decide(self, action_id: int, decision: Approve | Reject, *, now_s: float) -> Record:
        """A person's answer, valid once.

        Raises:
            NotAllowedError: their role does not let them decide.
            ApprovalError: what they were shown is not what is proposed, or another person must decide.
            TransitionError: it was decided already, has expired, or does not wait for a decision.
        """
        self.expire(now_s=now_s)
        with self._ledger.begin() as connection:
            waiting = self._waiting(connection, action_id, decision)
            if isinstance(decision, Approve):
                return self._approve(connection, waiting, self._approval(connection, waiting, decision), now_s)
            reason = f"rejected by {decision.by}{': ' if decision.reason else ''}{decision.reason}"
            return self._refuse(connection, action_id, decision.by, reason, now_s, {"reason": decision.reason})

    def edit(
        self, action_id: int, decision: Edit, verdict: Verdict, *, now_s: float, expiry_s: float = 600.0
    ) -> Record:
        """Replace a waiting proposal by one with another value, which the gate has judged anew.

        Unless the gate denies it, it is approved by the person who edited it; of class C, it waits for another person.

        Raises:
            NotAllowedError, ApprovalError, TransitionError: as for `decide`.
        """
        self.expire(now_s=now_s)
        with self._ledger.begin() as connection:
            waiting = self._waiting(connection, action_id, decision)
            self._approval(connection, waiting, decision)
            action, denied = decision.of(waiting.action), verdict.ruling is Ruling.DENY
            state = State.DENIED if denied else State.AWAITING_APPROVAL
            edited = self._put(connection, action, verdict, state, now_s, expiry_s, replaces=action_id)
            reason = f"edited by {decision.by}, replaced by {edited.id}"
            self._refuse(connection, action_id, decision.by, reason, now_s, {"replaced_by": edited.id})
            own = Approval(decision.by, self._role_of(decision.by), edited.proposal.digest)
            if not denied and self._objection(connection, edited, own) is None:
                return self._approve(connection, edited, own, now_s)
            return edited

    def _waiting(self, connection: Connection, action_id: int, decision: Approve | Edit | Reject) -> Record:
        """The proposal, if it waits for a decision and the person may make one."""
        record, role = self._record(connection, action_id), self._role_of(decision.by)
        if not role.may_decide:
            raise NotAllowedError(f"action {action_id}: a {role} cannot decide; an {Role.OPERATOR} must")
        if record.state is not State.AWAITING_APPROVAL:
            found = f"{record.state}{': ' if record.end_reason else ''}{record.end_reason}"
            raise TransitionError(f"action {action_id}: expected it to wait for a decision, found it {found}")
        return record

    def _approval(self, connection: Connection, waiting: Record, decision: Approve | Edit) -> Approval:
        approval = Approval(decision.by, self._role_of(decision.by), decision.digest)
        why_not = self._objection(connection, waiting, approval)
        if why_not is not None:
            raise ApprovalError(f"action {waiting.id}: {why_not}")
        return approval

    def _objection(self, connection: Connection, record: Record, approval: Approval) -> str | None:
        role, version = self._role_of(approval.by), self._state_version(connection)
        return objection(approval, record.proposal, state_version=version, role=role, now=self.wall_now())

    def _approve(self, connection: Connection, waiting: Record, approval: Approval, now_s: float) -> Record:
        row = approval_row(approval)
        columns: dict[str, object] = {"decided_by": approval.by, "approval": row}
        source, to = State.AWAITING_APPROVAL, State.APPROVED
        return self._ledger.move(connection, waiting.id, source, to, now_s, row, **columns)

    def _refuse(
        self, connection: Connection, action_id: int, by: str, reason: str, now_s: float, numbers: dict[str, object]
    ) -> Record:
        columns: dict[str, object] = {"decided_by": by, "end_reason": reason}
        source, to = State.AWAITING_APPROVAL, State.REJECTED
        return self._ledger.move(connection, action_id, source, to, now_s, {"by": by, **numbers}, **columns)
