"""A diagnosis, a change and a forecast in plain words, for prompts and for answers without a model."""

from collections.abc import Sequence

from agent.planner import Considered
from agent.quoting import quoted
from harness.action import Action, Forecast, Trust
from harness.diagnosis import Diagnosis, Finding
from harness.envelope.envelope import Envelope
from harness.envelope.record import EnvelopeRecord
from harness.journal.record import Record, State
from harness.memory import Recalled
from harness.objective import Slo
from stack.catalogue import in_words
from stack.setting import Value
from stack.snapshot import Signal, Snapshot

NOTHING = "none"
SHOWN = 8
STANDING = {
    State.AWAITING_APPROVAL: "waits for an approval",
    State.SHADOWED: "decided in shadow, not done",
    State.PROBATION: "on trial",
    State.ROLLING_BACK: "is being undone",
    State.NEEDS_PERSON: "needs a person",
}
HEADLINE = (
    Signal.RUNNING,
    Signal.WAITING,
    Signal.GATEWAY_QUEUE,
    Signal.KV_USAGE_RATIO,
    Signal.PREFIX_HIT_RATIO,
    Signal.TTFT_P99_S,
    Signal.ITL_MEAN_S,
    Signal.E2E_P99_S,
    Signal.PREEMPTIONS,
)


def value_text(value: Value | None) -> str:
    """A setting's value as a person writes it."""
    if value is None:
        return "unknown"
    return quoted(in_words(value))


def window_text(window_s: float | None) -> str:
    """Length of a window."""
    return "window of unknown length" if window_s is None else f"{window_s:g} s"


def slo_text(slo: Slo) -> str:
    """The promise to users."""
    whole = "" if slo.e2e_p99_s is None else f", P99 of whole requests {slo.e2e_p99_s:g} s"
    return (
        f"TTFT {slo.ttft_s:g} s plus {slo.ttft_s_per_prompt_token * 1000:g} s per 1000 prompt tokens, "
        f"ITL {slo.itl_s:g} s{whole}"
    )


def finding_text(finding: Finding) -> str:
    """One finding on one line."""
    evidence = ", ".join(f"{quoted(name)} {_number(value)}" for name, value in finding.evidence.items())
    reach = "tunable" if finding.tunable else f"not tunable. {quoted(finding.advice, 400)}".rstrip(". ")
    return (
        f"{finding.layer} {finding.cause} on {quoted(finding.target)}: {quoted(finding.claim, 400)} "
        f"(severity {finding.severity:.2f}, confidence {finding.confidence:.2f}, {reach}; {evidence or 'no evidence'})"
    )


def problems_text(diagnosis: Diagnosis) -> str:
    """The problems, numbered from 1, best explanation first; then what is only context."""
    context = [finding for finding in diagnosis.findings if finding not in diagnosis.problems]
    lines = [f"{number}. {finding_text(finding)}" for number, finding in enumerate(diagnosis.problems, start=1)]
    lines = lines or ["No problem was found."]
    return "\n".join(lines + [f"context: {finding_text(finding)}" for finding in context[:SHOWN]])


def fleet_text(snapshot: Snapshot) -> str:
    """The fleet's headline numbers; what was not measured is named as unknown."""
    facts = {signal: snapshot.value(signal) for signal in HEADLINE}
    said = [f"{signal} {'unknown' if value is None else f'{value:.4g}'}" for signal, value in facts.items()]
    rate = snapshot.per_s(Signal.ARRIVED)
    arrivals = "unknown" if rate is None else f"{rate:.4g}"
    queue = snapshot.fact(Signal.WAITING)
    before = "" if queue is None or queue.start is None else f" (a window ago {queue.start:.4g} waited)"
    return f"{len(snapshot.replicas)} replicas, arrivals per s {arrivals}, {', '.join(said)}{before}"


def missing_text(diagnosis: Diagnosis) -> str:
    """What could not be read and what that costs."""
    lines = [f"{quoted(item.signal)} on {quoted(item.target)}: {quoted(item.costs)}" for item in diagnosis.missing]
    return "\n".join(lines) or NOTHING


def action_text(action: Action) -> str:
    """A change on one line."""
    return f"{change_text(action)} ({quoted(action.reason, 400)})"


def change_text(action: Action) -> str:
    """What a change changes."""
    return f"{action.setting} on {quoted(action.target)} {value_text(action.before)} to {value_text(action.after)}"


def forecast_text(forecast: Forecast | None) -> str:
    """A forecast on one line."""
    if forecast is None:
        return "no forecast is possible now"
    if not forecast.effects:
        return quoted(forecast.note)
    effects = [
        f"{name} {effect.before:.4g} -> {effect.after:.4g} ({effect.low:.4g} to {effect.high:.4g}"
        f"{', ' if effect.reserve else ''}{effect.reserve})"
        for name, effect in forecast.effects.items()
    ]
    doubt = " DOUBTED" if forecast.trust is Trust.DOUBTED else ""
    note = f"; {quoted(forecast.note)}" if forecast.note else ""
    return f"forecast over {forecast.horizon_s:g} s{doubt}: {', '.join(effects) or NOTHING}{note}"


def considered_text(considered: Sequence[Considered]) -> str:
    """Candidates and what became of them, one a line."""
    lines = [f"{'ok' if c.kept else 'dropped'}: {change_text(c.action)}: {quoted(c.why)}" for c in considered]
    return "\n".join(lines) or NOTHING


def record_text(record: Record) -> str:
    """A journaled change on one line: what, where it stands, how it ended, what was measured."""
    measured = f"; measured {record.verification.measured}" if record.verification else ""
    reason = f": {quoted(record.end_reason, 300)}" if record.end_reason else ""
    standing = STANDING.get(record.state, record.state.replace("_", " "))
    return (
        f"#{record.id} {change_text(record.action)}: {standing}{reason}{measured} ({quoted(record.action.reason, 300)})"
    )


def allowance_text(envelope: Envelope) -> str:
    """What an envelope allows, one sentence a range."""
    ranges = (
        f"{quoted(one.setting)} on {quoted(one.target)} from {_exact(one.low)} to {_exact(one.high)}, "
        f"{_exact(one.step)} a step, every {_exact(one.every_s)} s, back after {_exact(one.back_after_s)} s"
        for one in envelope.ranges
    )
    guards = "".join(f"; ends if {guard.signal} is above {_exact(guard.at_most)}" for guard in envelope.guards)
    reason = f" ({quoted(envelope.reason, 300)})" if envelope.reason else ""
    return f"for {_exact(envelope.lasts_s)} s: {'; '.join(ranges)}{guards}{reason}"


def _exact(number: float) -> str:
    """Short where that is the same number: an approval covers exactly this one."""
    short = f"{number:g}"
    return short if float(short) == number else repr(number)


def envelope_text(record: EnvelopeRecord) -> str:
    """A journaled envelope on one line: what it allows, where it stands, how it ended."""
    moves = sum(place.moves for place in record.places)
    measured = f"; measured {record.verification.measured}" if record.verification else ""
    reason = f": {quoted(record.end_reason, 300)}" if record.end_reason else ""
    standing = record.state.replace("_", " ")
    return f"envelope {record.id} {allowance_text(record.envelope)}: {standing} after {moves} move(s){reason}{measured}"


def changes_text(records: Sequence[Record]) -> str:
    """The newest changes, newest first."""
    told = [record for record in reversed(records) if record.state is not State.DENIED]
    return "\n".join(record_text(record) for record in told[:SHOWN]) or "No change was made or proposed."


def recalled_text(recalled: Sequence[Recalled]) -> str:
    """Episodes from similar situations, one a line."""
    lines = [
        f"{quoted(e.cause)} on {quoted(e.target)}: {quoted(e.setting)} {value_text(e.before)} to {value_text(e.after)} "
        f"ended {e.ending.replace('_', ' ')}, measured {e.measured or 'nothing'}, weight {item.weight:.2f}"
        for item in recalled
        for e in (item.episode,)
    ]
    return "\n".join(lines) or NOTHING


def _number(value: float | str | None) -> str:
    if value is None:
        return "unknown"
    return quoted(value) if isinstance(value, str) else f"{value:.4g}"
