"""How actions, verdicts and verifications are written in a row, and read from it."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from math import isfinite
from typing import Any, TypeAlias

from sqlalchemy import RowMapping

from harness.action import Action, Forecast, Predicted, Trust
from harness.approval import Approval
from harness.journal.record import Permit, Record, State, Step
from harness.outcome import Measured, Verification
from harness.role import Role
from harness.verdict import RuleResult, Ruling, Verdict
from stack.layer import Layer
from stack.redaction import redacted_tree

Json: TypeAlias = dict[str, Any]


def action_row(action: Action) -> Json:
    """An action as JSON."""
    row: Json = redacted_tree(asdict(action))
    return row


def action_from(row: Mapping[str, Any]) -> Action:
    """An action from its JSON."""
    forecast = row["forecast"]
    return Action(
        **{**row, "layer": Layer(row["layer"]), "forecast": None if forecast is None else _forecast(forecast)}
    )


def verdict_row(verdict: Verdict) -> list[Json]:
    """A verdict as JSON."""
    return [redacted_tree(vars(rule)) for rule in verdict.rules]


def verdict_from(rows: list[Json]) -> Verdict:
    """A verdict from its JSON."""
    return Verdict(tuple(RuleResult(row["rule"], Ruling(row["ruling"]), row["detail"]) for row in rows))


def approval_row(approval: Approval) -> Json:
    """An approval as JSON."""
    return asdict(approval)


def permit_row(permit: Permit) -> Json:
    """A permit as JSON."""
    return {
        "epoch": permit.epoch,
        "state_version": permit.state_version,
        "steps": [asdict(step) for step in permit.steps],
        "verdict": verdict_row(permit.verdict),
    }


def verification_row(verification: Verification) -> Json:
    """A verification as JSON, which has no word for what is not finite: such a figure says nothing and is left out."""
    metrics = {
        name: {key: value for key, value in numbers.items() if isfinite(value)}
        for name, numbers in verification.metrics.items()
    }
    return asdict(replace(verification, metrics=metrics))


def verification_from(row: Mapping[str, Any]) -> Verification:
    """A verification from its JSON."""
    return Verification(**{**row, "measured": Measured(row["measured"])})


def record_from(row: RowMapping) -> Record:
    """A record from its row."""
    permit, verification, approval = row["permit"], row["verification"], row["approval"]
    return Record(
        id=row["id"],
        stack=row["stack"],
        action=action_from(row["proposal"]),
        state=State(row["state"]),
        verdict=verdict_from(row["verdict"]),
        proposed_s=row["proposed_s"],
        expires_at=row["expires_at"],
        # What was proposed under an older release names no state.
        state_version=row["state_version"] or 0,
        decided_by=row["decided_by"],
        approval=None if approval is None else Approval(**{**approval, "role": Role(approval["role"])}),
        permit=None if permit is None else _permit(permit),
        armed_s=row["armed_s"],
        applied_s=row["applied_s"],
        touched_s=row["touched_s"],
        ended_s=row["ended_s"],
        end_reason=row["end_reason"] or "",
        holds=row["holds"],
        verification=None if verification is None else verification_from(verification),
    )


def _forecast(row: Mapping[str, Any]) -> Forecast:
    effects, stressed = (
        {name: Predicted(**predicted) for name, predicted in row.get(key, {}).items()}
        for key in ("effects", "stressed")
    )
    return Forecast(row["horizon_s"], effects, Trust(row["trust"]), row["note"], stressed)


def _permit(row: Mapping[str, Any]) -> Permit:
    steps = tuple(Step(**step) for step in row["steps"])
    # Permits of the first release name neither.
    return Permit(steps, verdict_from(row["verdict"]), row.get("state_version", 0), row.get("epoch", 0))
