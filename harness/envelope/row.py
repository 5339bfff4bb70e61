"""How envelopes are written in a row, and read from it."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from sqlalchemy import RowMapping

from harness.approval import Approval
from harness.envelope.envelope import Envelope, Guard, Place, Range
from harness.envelope.record import EnvelopePermit, EnvelopeRecord, EnvelopeState
from harness.journal.row import Json, verdict_from, verdict_row, verification_from
from harness.role import Role
from stack.redaction import redacted_tree
from stack.snapshot import Signal


def envelope_row(envelope: Envelope) -> Json:
    """An envelope as JSON."""
    row: Json = redacted_tree(asdict(envelope))
    return row


def places_row(places: Iterable[Place]) -> list[Json]:
    """Places as JSON."""
    return [asdict(place) for place in places]


def permit_row(permit: EnvelopePermit) -> Json:
    """A permit as JSON."""
    return {
        "epoch": permit.epoch,
        "state_version": permit.state_version,
        "places": places_row(permit.places),
        "verdict": verdict_row(permit.verdict),
    }


def record_from(row: RowMapping) -> EnvelopeRecord:
    """A record from its row."""
    permit, approval, verification = row["permit"], row["approval"], row["verification"]
    return EnvelopeRecord(
        id=row["id"],
        stack=row["stack"],
        envelope=envelope_from(row["proposal"]),
        state=EnvelopeState(row["state"]),
        verdict=verdict_from(row["verdict"]),
        proposed_s=row["proposed_s"],
        expires_at=row["expires_at"],
        state_version=row["state_version"],
        decided_by=row["decided_by"],
        approval=None if approval is None else Approval(**{**approval, "role": Role(approval["role"])}),
        permit=None if permit is None else _permit(permit),
        places=_places(row["places"] or ()),
        opened_s=row["opened_s"],
        first_move_s=row["first_move_s"],
        touched_s=row["touched_s"],
        ended_s=row["ended_s"],
        end_reason=row["end_reason"] or "",
        verification=None if verification is None else verification_from(verification),
    )


def envelope_from(row: Mapping[str, Any]) -> Envelope:
    """An envelope from its JSON."""
    return Envelope(
        ranges=tuple(Range(**one) for one in row["ranges"]),
        lasts_s=row["lasts_s"],
        guards=tuple(Guard(Signal(one["signal"]), one["at_most"]) for one in row["guards"]),
        reason=row["reason"],
        requested_by=row["requested_by"],
    )


def _permit(row: Mapping[str, Any]) -> EnvelopePermit:
    return EnvelopePermit(_places(row["places"]), verdict_from(row["verdict"]), row["state_version"], row["epoch"])


def _places(rows: Iterable[Mapping[str, Any]]) -> tuple[Place, ...]:
    return tuple(Place(**row) for row in rows)
