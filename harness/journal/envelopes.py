"""Envelopes in the journal once they are allowed: opened, moved in and ended; each with its line in the log."""

from collections.abc import Iterable
from dataclasses import replace

from sqlalchemy.exc import IntegrityError

from harness.envelope.envelope import Place
from harness.envelope.record import EnvelopePermit, EnvelopeRecord, EnvelopeState
from harness.envelope.row import permit_row, places_row
from harness.errors import ApprovalError, TransitionError
from harness.journal.envelope_proposals import EnvelopeProposals
from harness.journal.reading import ENVELOPE_ENDED, ENVELOPE_OPENED
from harness.journal.row import verdict_row, verification_row
from harness.outcome import Verification
from harness.verdict import Verdict

MOVE, MOVED = "envelope_move", "envelope_moved"
_S = EnvelopeState


class Envelopes(EnvelopeProposals):
    """One stack's envelopes: what has an effect needs the lease."""

    def open(self, envelope_id: int, permit: EnvelopePermit, now_s: float) -> EnvelopeRecord:
        """Commit the permit: from here on the former values are stored, and moves may be made. Uses the approval up.

        Raises:
            ApprovalError: nobody's approval covers it any more.
            TransitionError: it is not approved, another one is in force, or the stack's state is not the permit's.
            LeaseLostError: the lease is not ours.
        """
        permit = replace(permit, epoch=self._ledger.held_lease().epoch)
        columns = {"permit": permit_row(permit), "places": places_row(permit.places), "opened_s": now_s}
        try:
            with self._ledger.begin() as connection:
                record, found = self._envelope(connection, envelope_id), self._state_version(connection)
                if found != permit.state_version:
                    changed = f"expected the stack's state {permit.state_version}, found {found}"
                    raise TransitionError(f"envelope {envelope_id}: {changed}: it was changed or frozen meanwhile")
                if record.approval is None:
                    raise ApprovalError(f"envelope {envelope_id}: it is approved by nobody")
                self._require(connection, record, record.approval)
                numbers = permit_row(permit)
                self._move(connection, record, _S.APPROVED, _S.OPEN, now_s, numbers, columns, what=ENVELOPE_OPENED)
        except IntegrityError as error:
            raise TransitionError(f"envelope {envelope_id}: another envelope is in force") from error
        return self.envelope(envelope_id)

    def commit_move(
        self, record: EnvelopeRecord, places: tuple[Place, ...], verdict: Verdict, now_s: float
    ) -> EnvelopeRecord:
        """Commit a move before it is sent: the places with the value wanted, and the one from before beside it.

        Raises:
            TransitionError: changes are frozen, or the envelope is not open any more.
            LeaseLostError: the lease is not ours.
        """
        self._ledger.held_lease()
        with self._ledger.begin() as connection:
            frozen = self._frozen(connection)
            if frozen is not None:
                raise TransitionError(f"envelope {record.id}: changes are frozen: {frozen}")
            numbers = {"places": places_row(places), "verdict": verdict_row(verdict)}
            columns = {
                "places": places_row(_with(record.places, places)),
                "first_move_s": now_s if record.first_move_s is None else record.first_move_s,
                "touched_s": now_s,
            }
            self._move(connection, record, _S.OPEN, _S.OPEN, now_s, numbers, columns, what=MOVE)
        return self.envelope(record.id)

    def settle(self, record: EnvelopeRecord, places: tuple[Place, ...], now_s: float) -> EnvelopeRecord:
        """Note what was read back after a move."""
        with self._ledger.begin() as connection:
            columns = {"places": places_row(_with(record.places, places))}
            numbers = {"read_back": places_row(places)}
            self._move(connection, record, record.state, record.state, now_s, numbers, columns, what=MOVED)
        return self.envelope(record.id)

    def close(
        self, record: EnvelopeRecord, reason: str, verification: Verification | None, now_s: float
    ) -> EnvelopeRecord:
        """No move is made any more: the former values are going to be written back."""
        with self._ledger.begin() as connection:
            row = None if verification is None else verification_row(verification)
            columns: dict[str, object] = {"end_reason": reason, "verification": row, "touched_s": now_s}
            self._move(connection, record, _S.OPEN, _S.CLOSING, now_s, {"reason": reason}, columns)
        return self.envelope(record.id)

    def end(
        self,
        record: EnvelopeRecord,
        to: EnvelopeState,
        now_s: float,
        reason: str,
        verification: Verification | None = None,
    ) -> EnvelopeRecord:
        """Bring it to one of the four endings."""
        with self._ledger.begin() as connection:
            found = verification or record.verification
            row = None if found is None else verification_row(found)
            columns: dict[str, object] = {"ended_s": now_s, "end_reason": reason, "verification": row}
            if to is _S.ROLLED_BACK:
                columns["touched_s"] = now_s
            numbers = {"state": to.value, "reason": reason, "verification": row}
            self._move(connection, record, record.state, to, now_s, numbers, columns, what=ENVELOPE_ENDED)
        return self.envelope(record.id)


def _with(places: tuple[Place, ...], changed: Iterable[Place]) -> tuple[Place, ...]:
    by_key = {place.key: place for place in changed}
    return tuple(by_key.get(place.key, place) for place in places)
