"""One envelope: the documented JSON shape, and lines for people."""

from dataclasses import asdict

from agent.account import envelope_text
from harness.envelope.record import ENDED, EnvelopeRecord
from ui.report import Json, plain, verification_json


def envelope_json(record: EnvelopeRecord, start_s: float = 0.0) -> Json:
    """One entry of `envelopes` in `run --json` and `journal list --json`; times are seconds since `start_s`."""
    envelope = record.envelope
    return {
        "id": record.id,
        "stack": record.stack,
        "ranges": [plain(asdict(one)) for one in envelope.ranges],
        "guards": [plain(asdict(one)) for one in envelope.guards],
        "lasts_s": plain(envelope.lasts_s),
        "reason": envelope.reason,
        "requested_by": envelope.requested_by,
        "decided_by": record.decided_by,
        "state": str(record.state),
        "outcome": str(record.state) if record.state in ENDED else None,
        "outcome_reason": record.end_reason,
        "opened_s": None if record.opened_s is None else plain(record.opened_s - start_s),
        "ended_s": None if record.ended_s is None else plain(record.ended_s - start_s),
        "moves": sum(place.moves for place in record.places),
        "places": [
            {"setting": one.setting, "target": one.target, "stored": plain(one.stored), "last": plain(one.last)}
            for one in record.moved
        ],
        "verification": verification_json(record.verification),
    }


def envelope_line(record: EnvelopeRecord) -> str:
    """One line of `journal list`."""
    by = f", decided by {record.decided_by}" if record.decided_by else ""
    return f"       {record.stack}  {envelope_text(record)}{by}"
