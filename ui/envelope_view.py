"""One envelope: the documented JSON shape, and lines for people."""

from collections.abc import Sequence
from dataclasses import asdict

from agent.account import allowance_text, envelope_text
from harness.envelope.record import ENDED, EnvelopeRecord
from harness.journal.envelopes import MOVE
from harness.journal.reading import Event
from ui.markdown import plain_text, table
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


def envelope_report(record: EnvelopeRecord, log: Sequence[Event]) -> str:
    """One envelope from what was allowed to how it ended, in Markdown."""
    decided = plain_text(record.decided_by or "nobody")
    by = f"asked for by {plain_text(record.envelope.requested_by)}, decided by {decided}"
    lines = [f"# Envelope {record.id}", "", f"Allows {plain_text(allowance_text(record.envelope))}.", "", f"{by}.", ""]
    ending = f"{record.state.replace('_', ' ')}: {record.end_reason}" if record.end_reason else str(record.state)
    lines += [f"It stands: {plain_text(ending)}.", "", "## Rules checked", ""]
    lines += table(("rule", "ruling", "numbers"), ((r.rule, r.ruling, r.detail) for r in record.verdict.rules))
    moves = (
        (event.seq, f"{event.at:%F %T}", one["setting"], one["target"], f"{one['unsure_of']:g}", f"{one['last']:g}")
        for event in log
        if event.what == MOVE
        for one in event.numbers["places"]
    )
    lines += ["## Moves", "", *table(("line", "time (UTC)", "setting", "target", "from", "to"), moves)]
    told = ((event.seq, event.what, event.hash[:16]) for event in log)
    return "\n".join([*lines, "## Log", "", *table(("line", "what", "hash"), told)])
