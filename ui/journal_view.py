"""Actions of the journal as a program and a person see them: documented JSON, and lines."""

from dataclasses import asdict, dataclass
from datetime import datetime

from agent.account import STANDING
from harness.journal.reading import Event, JournalReader
from harness.journal.record import ENDED, Record
from harness.verdict import Verdict
from stack.catalogue import in_words
from ui.report import Json, action_json, plain, verification_json


@dataclass(frozen=True)
class Told:
    """An action with the lines of the log that tell of it, oldest first."""

    record: Record
    events: tuple[Event, ...]

    @property
    def proposed_at(self) -> datetime | None:
        """Wall time, UTC; None for an action without a line."""
        return self.events[0].at if self.events else None

    @property
    def ended_at(self) -> datetime | None:
        """Wall time of its ending; None while it has none."""
        return self.events[-1].at if self.events and self.record.outcome is not None else None

    @property
    def standing(self) -> str:
        """How it stands or ended, in words."""
        state = self.record.state
        return str(state).replace("_", " ") if state in ENDED else STANDING.get(state, str(state))


def told(journal: JournalReader) -> tuple[Told, ...]:
    """Every action of a journal, oldest first."""
    lines: dict[int | None, list[Event]] = {}
    for event in journal.events():
        lines.setdefault(event.action_id, []).append(event)
    return tuple(Told(record, tuple(lines.get(record.id, ()))) for record in journal.records())


def told_json(one: Told) -> Json:
    """One entry of `journal list --json`."""
    record, outcome = one.record, one.record.outcome
    return {
        "id": record.id,
        "stack": record.stack,
        **action_json(record.action),
        "cause": record.action.cause,
        "layer": str(record.action.layer),
        "requested_by": record.action.requested_by,
        "decided_by": record.decided_by,
        "state": str(record.state),
        "outcome": str(outcome.ending) if outcome else None,
        "outcome_reason": outcome.reason if outcome else "",
        "holds": plain(outcome.holds) if outcome else None,
        "verification": verification_json(record.verification),
        "proposed_at": _iso(one.proposed_at),
        "ended_at": _iso(one.ended_at),
    }


def whole_json(one: Told) -> Json:
    """`journal show --json`."""
    permit, approval = one.record.permit, one.record.approval
    return {
        **told_json(one),
        "rules": _rules(one.record.verdict),
        "approval": None if approval is None else asdict(approval),
        "permit": None
        if permit is None
        else {
            "epoch": permit.epoch,
            "state_version": permit.state_version,
            "steps": [{"target": s.target, "from": plain(s.pre), "to": plain(s.wanted)} for s in permit.steps],
            "rules": _rules(permit.verdict),
        },
        "events": [event_json(event) for event in one.events],
    }


def event_json(event: Event) -> Json:
    """One line of the log."""
    return {
        "seq": event.seq,
        "at": _iso(event.at),
        "what": event.what,
        "numbers": plain(event.numbers),
        "hash": event.hash,
    }


def told_text(one: Told) -> str:
    """One action on one line."""
    record, action = one.record, one.record.action
    at = one.proposed_at.strftime("%Y-%m-%d %H:%M:%S") if one.proposed_at else "at some time"
    change = f"{action.setting} on {action.target}: {in_words(action.before)} -> {in_words(action.after)}"
    by = f", decided by {record.decided_by}" if record.decided_by else ""
    why = f": {record.end_reason}" if record.end_reason else ""
    return f"{record.id:5d}  {at}  {record.stack}  {change}  {one.standing}{by}{why}"


def _rules(verdict: Verdict) -> list[Json]:
    return [asdict(rule) for rule in verdict.rules]


def _iso(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()
