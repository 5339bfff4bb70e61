"""What happened, for people who were not there: an action or a span of time as a Markdown report."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from harness.action import Forecast
from harness.journal.reading import Event
from harness.journal.record import ENDED, Permit, Record, State
from harness.outcome import Verification
from harness.verdict import Verdict
from stack.catalogue import in_words
from ui.journal_view import Told
from ui.markdown import plain_text, table

DECISIONS = {State.APPROVED.value, State.REJECTED.value, State.EXPIRED.value, State.DENIED.value, State.SHADOWED.value}


def span_report(actions: Sequence[Told], others: Sequence[Event], since: datetime, until: datetime) -> str:
    """Everything between two times.

    Args:
        actions: what was proposed or ended in the span.
        others: lines of the log in it that are about no action: freezes, stops, sessions, envelopes.
    """
    lines = [f"# Changes from {_minute(since)} to {_minute(until)}", ""]
    if not actions and not others:
        return "\n".join([*lines, "Nothing was proposed or changed.", ""])
    changes = ((one.record.id, _change(one.record), one.standing, one.record.end_reason) for one in actions)
    lines += table(("action", "change", "ending", "reason"), changes)
    if others:
        lines += ["## Freezes, stops, sessions and envelopes", "", *_log(others)]
    for one in actions:
        lines += ["", *_action(one)]
    return "\n".join(lines)


def action_report(one: Told) -> str:
    """One action from what was seen to how it ended."""
    return "\n".join(_action(one))


def _action(one: Told) -> list[str]:
    record = one.record
    lines = [f"# Action {record.id}: {plain_text(_change(record))}", "", *_facts(one)]
    lines += ["## What was seen and proposed", "", *_seen(record)]
    lines += ["## Rules checked", "", *_rules(record.verdict)]
    if record.permit is not None:
        lines += ["## What was written", "", *_written(record.permit, one)]
        lines += ["## Rules checked again, directly before the permit", "", *_rules(record.permit.verdict)]
    if record.verification is not None:
        lines += ["## Verification", "", *_verified(record.verification)]
    return [*lines, "## Log", "", *_log(one.events)]


def _facts(one: Told) -> list[str]:
    record = one.record
    decision = next((event for event in one.events if event.what in DECISIONS), None)
    ending = one.standing if record.outcome is None else f"{one.standing}: {record.end_reason}"
    rows: list[tuple[str, object]] = [
        ("stack", record.stack),
        ("proposed", f"{_second(one.proposed_at)} by {record.action.requested_by}"),
        ("decided", f"{_second(decision.at)} by {record.decided_by or 'the gate'}" if decision else "not yet"),
        ("ended", _second(one.ended_at)),
        ("ending", ending),
    ]
    if record.state in ENDED and record.holds is not None:
        rows.append(("the stack holds", in_words(record.holds)))
    return table(("", ""), rows)


def _seen(record: Record) -> list[str]:
    action = record.action
    lines = [f"{plain_text(action.cause)} ({plain_text(action.layer)}): {plain_text(action.reason)}", ""]
    if action.comment:
        lines += [f"A model's comment, unverified: {plain_text(action.comment)}", ""]
    return [*lines, *_forecast(action.forecast)]


def _forecast(forecast: Forecast | None) -> list[str]:
    if forecast is None:
        return ["No forecast was made.", ""]
    note = f" ({plain_text(forecast.note)})" if forecast.note else ""
    lines = [f"Forecast for {forecast.horizon_s:g} s, {forecast.trust}{note}:", ""]
    rows = (
        (name, _number(one.before), _number(one.after), f"{_number(one.low)} to {_number(one.high)}")
        for name, one in forecast.effects.items()
    )
    return [*lines, *table(("quantity", "without", "with", "80 % interval"), rows)]


def _rules(verdict: Verdict) -> list[str]:
    lines = [f"Ruling: **{verdict.ruling}**.", ""]
    return [*lines, *table(("rule", "ruling", "numbers"), ((r.rule, r.ruling, r.detail) for r in verdict.rules))]


def _written(permit: Permit, one: Told) -> list[str]:
    read: Mapping[str, float | str] = {}
    for event in one.events:
        read = event.numbers.get("read_back", read)
    rows = (
        (step.target, in_words(step.pre), in_words(step.wanted), in_words(read[step.target]) if read else "")
        for step in permit.steps
    )
    said = f"Permit under lease epoch {permit.epoch}, for the stack's state {permit.state_version}."
    lines = [said, "", *table(("target", "former value, the undo", "wanted", "read back"), rows)]
    failed = [event.numbers["error"] for event in one.events if event.what == "write_failed"]
    return [*lines, *(f"Not sent, or not answered: {plain_text(error)}" for error in failed), *([""] if failed else [])]


def _verified(found: Verification) -> list[str]:
    how = f", {found.method} over {found.window_s:g} s" if found.method else ""
    lines = [f"**{found.measured}**{plain_text(how)}: {plain_text(found.reason)}", ""]
    rows = ((name, *(_number(numbers.get(key)) for key in _MEASURED)) for name, numbers in found.metrics.items())
    return [*lines, *table(("metric", *_MEASURED), rows)] if found.metrics else lines


_MEASURED = ("before", "after", "ratio", "low", "high")


def _log(events: Sequence[Event]) -> list[str]:
    rows = ((event.seq, _second(event.at), event.what, _about(event), event.hash[:16]) for event in events)
    return table(("line", "time (UTC)", "what", "by or why", "hash"), rows)


def _about(event: Event) -> str:
    said = (event.numbers.get(name) for name in ("by", "reason", "error"))
    whose = [f"envelope {event.numbers['envelope_id']}"] if "envelope_id" in event.numbers else []
    return "; ".join([*whose, *(str(one) for one in said if one)])


def _change(record: Record) -> str:
    action = record.action
    return f"{action.setting} on {action.target}, {in_words(action.before)} to {in_words(action.after)}"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def _second(at: datetime | None) -> str:
    return "not yet" if at is None else at.strftime("%Y-%m-%d %H:%M:%S")


def _minute(at: datetime) -> str:
    return at.strftime("%Y-%m-%d %H:%M UTC")
