"""Can the metrics be believed: missing, silent, stale, impossible or contradictory ones."""

import math

from harness.diagnosis import Finding
from skills.implausible import implausible_findings
from skills.replica import Replica
from skills.skill import SkillContext, skill
from stack.layer import Layer
from stack.signal_costs import SINGLE_SCRAPE
from stack.snapshot import FLEET, Missing, Signal

STALE_S = 30.0
"""The gate's own limit: on older facts no change is allowed."""
ESSENTIAL = (Signal.RUNNING, Signal.WAITING, Signal.KV_USAGE_RATIO)
"""Without these no change is safe, whatever else is known."""
LEFT_OUT = "was left out"
"""How the readers of metrics end a warning about a series they could not use."""


@skill(effect="read", layer=Layer.OBSERVABILITY)
def inspect_observability(ctx: SkillContext) -> tuple[Finding, ...]:
    """Report metrics that are missing, stale, silent on one replica, not numbers, impossible or contradictory."""
    return (*_silent(ctx), *_missing(ctx), *_stale(ctx), *_not_finite(ctx), *implausible_findings(ctx), *_odd(ctx))


def _claim(cause: str, claim: str, severity: float, target: str, evidence: dict[str, float | str | None]) -> Finding:
    return Finding(
        layer=Layer.OBSERVABILITY,
        cause=cause,
        claim=claim,
        severity=severity,
        confidence=0.9,
        tunable=False,
        target=target,
        evidence=evidence,
        advice="Ask whoever runs the monitoring or the engine's metrics; nothing is changed on what cannot be seen.",
    )


def _silent(ctx: SkillContext) -> list[Finding]:
    """A replica without a single engine fact while others have theirs."""
    told = {name: set(facts) & set(ESSENTIAL) for name, facts in ctx.snapshot.replicas.items()}
    if not any(told.values()):
        return []
    return [
        _claim(
            "replica_silent", f"No engine metric of {name} was read, while its peers' were.", 0.6, name, {"facts": 0.0}
        )
        for name, found in sorted(told.items())
        if not found and ctx.snapshot.value(Signal.UP, name) != 0
    ]


def _missing(ctx: SkillContext) -> list[Finding]:
    """Essential signals that a window should have shown; a single scrape never has them, which is no fault."""
    if not ctx.snapshot.fleet and not any(ctx.snapshot.replicas.values()):
        return []
    lacking = [one for one in ctx.snapshot.missing if one.signal in ESSENTIAL and one.reason != SINGLE_SCRAPE]
    silent = {finding.target for finding in _silent(ctx)}
    by_target: dict[str, list[Missing]] = {}
    for one in lacking:
        down = one.target != FLEET and ctx.snapshot.value(Signal.UP, one.target) == 0
        if one.target not in silent and not down:
            by_target.setdefault(one.target, []).append(one)
    return [_lacking(target, ones) for target, ones in sorted(by_target.items())]


def _lacking(target: str, ones: list[Missing]) -> Finding:
    names = ", ".join(one.signal for one in ones)
    claim = f"{names} of {target} cannot be read ({ones[0].reason}); unknown: {'; '.join(one.costs for one in ones)}."
    return _claim("metrics_missing", claim, 0.5, target, {str(one.signal): None for one in ones})


def _stale(ctx: SkillContext) -> list[Finding]:
    found = []
    for name, facts in sorted(ctx.snapshot.replicas.items()):
        ages = [fact.age_s for signal, fact in facts.items() if signal in ESSENTIAL and fact.age_s is not None]
        if ages and max(ages) > STALE_S and Replica(ctx.snapshot, name).value(Signal.UP) != 0:
            claim = f"The newest metrics of {name} are {max(ages):.0f} s old: what it does now is unknown."
            found.append(_claim("metrics_stale", claim, 0.6, name, {"age_s": max(ages)}))
    return found


def _not_finite(ctx: SkillContext) -> list[Finding]:
    found = []
    for name, facts in [(FLEET, ctx.snapshot.fleet), *sorted(ctx.snapshot.replicas.items())]:
        bad = [str(signal) for signal, fact in facts.items() if not math.isfinite(fact.value)]
        if bad:
            claim = f"{', '.join(sorted(bad))} of {name} is not a number."
            found.append(_claim("metrics_not_finite", claim, 0.6, name, dict.fromkeys(bad)))
    return found


def _odd(ctx: SkillContext) -> list[Finding]:
    """What the reader of the metrics found odd: context, unless it had to leave something out as unusable.

    Their words may be those of a log line, which anybody can write who sends requests, so only their number is told.
    """
    warnings = ctx.snapshot.warnings
    if not warnings:
        return []
    dropped = [warning for warning in warnings if LEFT_OUT in warning]
    claim = (
        f"{len(warnings)} oddities in the input, something had to be left out for {len(dropped)}; diagnose lists them."
    )
    evidence: dict[str, float | str | None] = {"warnings": float(len(warnings)), "left_out": float(len(dropped))}
    return [_claim("odd_input", claim, 0.35 if dropped else 0.2, FLEET, evidence)]
