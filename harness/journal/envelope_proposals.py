"""Envelopes in the journal until they are allowed: proposed, decided on, expired; each with its line in the log."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from sqlalchemy import Connection, insert, or_, select, update

from harness.approval import Approval, Approve, Reject, objection
from harness.envelope.envelope import Envelope
from harness.envelope.record import IN_FORCE, LEGAL, EnvelopeRecord, EnvelopeState
from harness.envelope.row import envelope_row, record_from
from harness.errors import ApprovalError, TransitionError
from harness.journal.chain import row_digest
from harness.journal.envelope_reading import EnvelopeReader
from harness.journal.ledger import Ledger
from harness.journal.row import approval_row, verdict_row
from harness.journal.schema import ENVELOPE
from harness.journal.store import Store
from harness.mode import Mode
from harness.role import NotAllowedError, Role, RoleOf
from harness.verdict import Ruling, Verdict
from stack.redaction import redacted_tree

_S = EnvelopeState


class EnvelopeProposals(EnvelopeReader):
    """What is asked for, and what persons decide on it.

    Args:
        ledger: writes the log's lines; what has an effect needs its lease.
        role_of: tells what a person is now.
    """

    def __init__(self, store: Store, ledger: Ledger, role_of: RoleOf, stack: str) -> None:
        super().__init__(store, stack=stack)
        self._ledger, self._role_of = ledger, role_of

    def propose(
        self, envelope: Envelope, verdict: Verdict, *, mode: Mode, now_s: float, expiry_s: float = 600.0
    ) -> EnvelopeRecord:
        """Store a proposal with the gate's verdict. It waits for a person in every mode; shadow only records it."""
        state = _S.SHADOWED if mode is Mode.SHADOW else _S.AWAITING_APPROVAL
        denied = verdict.ruling is Ruling.DENY
        with self._ledger.begin() as connection:
            values: dict[str, object] = {
                "stack": self._stack,
                "state": (_S.DENIED if denied else state).value,
                "proposal": envelope_row(envelope),
                "verdict": verdict_row(verdict),
                "proposed_s": now_s,
                "expires_at": self._ledger.wall_now() + timedelta(seconds=expiry_s),
                "state_version": self._state_version(connection),
                "end_reason": _denials(verdict) or None,
            }
            result = connection.execute(insert(ENVELOPE).values(**values))
            envelope_id = int(result.inserted_primary_key[0])  # type: ignore[index]
            self._log(
                connection, envelope_id, f"envelope_{values['state']}", now_s, {"envelope": envelope_row(envelope)}
            )
        return self.envelope(envelope_id)

    def decide(self, envelope_id: int, decision: Approve | Reject, *, now_s: float) -> EnvelopeRecord:
        """A person's answer, valid once.

        Raises:
            NotAllowedError: their role does not let them decide.
            ApprovalError: what they were shown is not what is proposed.
            TransitionError: it was decided already, has expired, or does not wait for a decision.
        """
        self.expire(now_s=now_s)
        with self._ledger.begin() as connection:
            waiting, role = self._envelope(connection, envelope_id), self._role_of(decision.by)
            if not role.may_decide:
                raise NotAllowedError(f"envelope {envelope_id}: a {role} cannot decide; an {Role.OPERATOR} must")
            if waiting.state is not _S.AWAITING_APPROVAL:
                found = f"{waiting.state}{': ' if waiting.end_reason else ''}{waiting.end_reason}"
                raise TransitionError(f"envelope {envelope_id}: expected it to wait for a decision, found it {found}")
            if isinstance(decision, Approve):
                approval = Approval(decision.by, role, decision.digest)
                self._require(connection, waiting, approval)
                columns: dict[str, object] = {"decided_by": decision.by, "approval": approval_row(approval)}
                self._move(connection, waiting, _S.AWAITING_APPROVAL, _S.APPROVED, now_s, {"by": decision.by}, columns)
            else:
                reason = f"rejected by {decision.by}{': ' if decision.reason else ''}{decision.reason}"
                columns = {"decided_by": decision.by, "end_reason": reason}
                self._move(connection, waiting, _S.AWAITING_APPROVAL, _S.REJECTED, now_s, {"by": decision.by}, columns)
        return self.envelope(envelope_id)

    def expire(self, *, now_s: float) -> None:
        """End what nobody decided on in time, and what was proposed for a state the stack is not in any more."""
        with self._ledger.begin() as connection:
            late = ENVELOPE.c.expires_at <= self._ledger.wall_now()
            moved = ENVELOPE.c.state_version != self._state_version(connection)
            waiting = (ENVELOPE.c.stack == self._stack, ENVELOPE.c.state == _S.AWAITING_APPROVAL.value)
            for row in connection.execute(select(ENVELOPE).where(*waiting, or_(late, moved))).mappings().all():
                record = record_from(row)
                in_time = record.expires_at > self._ledger.wall_now()
                changed = "the stack was changed or frozen since it was proposed"
                reason = changed if in_time else "nobody decided in time"
                self._move(connection, record, record.state, _S.EXPIRED, now_s, {}, {"end_reason": reason})

    def _require(self, connection: Connection, record: EnvelopeRecord, approval: Approval) -> None:
        version, role = self._state_version(connection), self._role_of(approval.by)
        now = self._ledger.wall_now()
        why_not = objection(approval, record.proposal, state_version=version, role=role, now=now)
        if why_not is not None:
            raise ApprovalError(f"envelope {record.id}: {why_not}")

    def _move(
        self,
        connection: Connection,
        record: EnvelopeRecord,
        source: EnvelopeState,
        to: EnvelopeState,
        now_s: float,
        numbers: Mapping[str, object],
        columns: Mapping[str, object],
        *,
        what: str | None = None,
    ) -> None:
        """Change a row from exactly `source`, and log it.

        Raises:
            TransitionError: not legal, or it is not in `source` any more.
            LeaseLostError: it has an effect, or may have had one, and we hold no lease.
        """
        if to not in LEGAL.get(source, frozenset()):
            raise TransitionError(f"envelope {record.id}: there is no way from {source} to {to}")
        if to is _S.OPEN or source in IN_FORCE:
            self._ledger.held_lease()
        guarded = update(ENVELOPE).where(ENVELOPE.c.id == record.id, ENVELOPE.c.state == source.value)
        kept = {
            name: value if name in ("permit", "places") else redacted_tree(value) for name, value in columns.items()
        }
        if connection.execute(guarded.values(state=to.value, **kept)).rowcount != 1:
            raise TransitionError(f"envelope {record.id}: expected it to be {source}, somebody else moved it")
        self._log(connection, record.id, what or f"envelope_{to.value}", now_s, numbers)

    def _log(
        self, connection: Connection, envelope_id: int, what: str, now_s: float, numbers: Mapping[str, object]
    ) -> None:
        """A line that holds the digest of the envelope's row as it is now; see harness.journal.audit."""
        row = connection.execute(select(ENVELOPE).where(ENVELOPE.c.id == envelope_id)).mappings().one()
        covered: Mapping[str, Any] = {"envelope_id": envelope_id, "row_digest": row_digest(dict(row)), **numbers}
        self._ledger.log(connection, None, what, now_s, covered)


def _denials(verdict: Verdict) -> str:
    """Why the gate denies it; several rules may have failed of one thing."""
    return "; ".join(dict.fromkeys(hit.detail for hit in verdict.hits if hit.ruling is Ruling.DENY))
