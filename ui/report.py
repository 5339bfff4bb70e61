"""What commands print: the documented JSON shapes, and the same in words."""

import math
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from rich.markup import escape

from harness.action import Action, Forecast
from harness.diagnosis import Diagnosis, Finding
from harness.outcome import Verification
from stack.catalogue import in_words
from stack.snapshot import Missing, Snapshot

Json: TypeAlias = dict[str, object]


def plain(value: object) -> object:
    """`value` for JSON: numbers rounded to six significant digits, what is not finite as null."""
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def finding_json(finding: Finding) -> Json:
    """One finding of `diagnose --json`."""
    return {
        "layer": str(finding.layer),
        "cause": finding.cause,
        "severity": round(finding.severity, 3),
        "confidence": round(finding.confidence, 3),
        "tunable": finding.tunable,
        "target": finding.target,
        "evidence": plain(finding.evidence),
        "claim": finding.claim,
        "advice": finding.advice,
    }


def missing_json(missing: Missing) -> Json:
    """One entry of `missing`."""
    return {"signal": missing.signal, "target": missing.target, "reason": missing.reason, "costs": missing.costs}


def diagnosis_json(diagnosis: Diagnosis, snapshot: Snapshot) -> Json:
    """`diagnose --json`: problems in `findings`, best first; what is only context in `context`."""
    problems = diagnosis.problems
    return {
        "healthy": diagnosis.healthy,
        "findings": [finding_json(finding) for finding in problems],
        "context": [finding_json(finding) for finding in diagnosis.findings if finding not in problems],
        "missing": [missing_json(item) for item in diagnosis.missing],
        "window_s": plain(snapshot.window_s) if snapshot.scrapes > 1 else None,
        "scrapes": snapshot.scrapes,
        "warnings": list(snapshot.warnings),
        "fleet": {str(signal): plain(fact.value) for signal, fact in snapshot.fleet.items()},
    }


def action_json(action: Action) -> Json:
    """A proposed change."""
    return {
        "setting": action.setting,
        "target": action.target,
        "from": plain(action.before),
        "to": plain(action.after),
        "reason": action.reason,
        "forecast": forecast_json(action.forecast),
    }


def forecast_json(forecast: Forecast | None) -> Json | None:
    """Predicted effect, or null."""
    if forecast is None:
        return None
    effects = {
        name: {
            "before": plain(e.before),
            "after": plain(e.after),
            "low": plain(e.low),
            "high": plain(e.high),
            "conclusive": e.conclusive,
        }
        for name, e in forecast.effects.items()
    }
    return {
        "horizon_s": forecast.horizon_s,
        "trust": str(forecast.trust),
        "note": forecast.note,
        "effects": effects,
    }


def verification_json(verification: Verification | None) -> Json | None:
    """Measured effect, or null when nothing was measured."""
    if verification is None:
        return None
    return {
        "measured": str(verification.measured),
        "reason": verification.reason,
        "method": verification.method,
        "window_s": plain(verification.window_s),
        "metrics": plain(verification.metrics),
    }


def diagnosis_text(diagnosis: Diagnosis, snapshot: Snapshot, actions: Sequence[Action] = ()) -> str:
    """The diagnosis in Rich markup, for a terminal."""
    lines = [_headline(diagnosis, snapshot.scrapes)]
    for number, finding in enumerate(diagnosis.problems, start=1):
        lines.append(
            f"{number}. [bold]{finding.layer}[/bold] {escape(finding.cause)} on {escape(finding.target)} "
            f"(severity {finding.severity:.2f}, confidence {finding.confidence:.2f}"
            f"{'' if finding.tunable else ', not tunable'})"
        )
        lines.append(f"   {escape(finding.claim)}")
        if finding.advice:
            lines.append(f"   {escape(finding.advice)}")
    lines += [
        f"Could try: {escape(action.setting)} on {escape(action.target)} "
        f"{in_words(action.before)} -> {in_words(action.after)}{_unless_said(action.reason, diagnosis)}"
        for action in actions
    ]
    if diagnosis.problems and diagnosis.problems[0].tunable and not actions:
        lines.append("No change is proposed: the values in force of the settings that could help are not known here.")
    lines += [f"Context: {escape(f.claim)}" for f in diagnosis.findings if f not in diagnosis.problems]
    lines += [f"Missing: {escape(m.signal)} on {escape(m.target)}: {escape(m.costs)}" for m in diagnosis.missing]
    lines += [f"Note: {escape(warning)}" for warning in snapshot.warnings]
    return "\n".join(lines)


def _unless_said(reason: str, diagnosis: Diagnosis) -> str:
    return "" if any(reason == finding.claim for finding in diagnosis.problems) else f": {escape(reason)}"


def _headline(diagnosis: Diagnosis, scrapes: int) -> str:
    if scrapes < 2 and diagnosis.healthy:
        return (
            "[green]Nothing wrong in the configuration.[/green] One scrape says nothing about load: "
            "give a second one, taken some seconds later."
        )
    window = "window of unknown length" if diagnosis.window_s is None else f"window of {diagnosis.window_s:g} s"
    if diagnosis.healthy:
        return f"[green]Healthy[/green]: nothing needs attention ({window})."
    return f"[yellow]{len(diagnosis.problems)} finding(s)[/yellow], best explanation first ({window})."
