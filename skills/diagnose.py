"""All read skills together: what is wrong, best explanation first, with causes put before their symptoms."""

from dataclasses import replace

from harness.diagnosis import HEALTHY_BELOW, Diagnosis, Finding, rank
from skills.gathering import gathered
from skills.inspect_batching import inspect_batching
from skills.inspect_cache import inspect_cache
from skills.inspect_execution import inspect_execution
from skills.inspect_memory import inspect_memory
from skills.inspect_observability import inspect_observability
from skills.inspect_routing import inspect_routing
from skills.lone_backlog import as_routing
from skills.skill import Skill, SkillContext, SkillError
from stack.layer import Layer
from stack.snapshot import FLEET, Snapshot

INSPECTIONS: tuple[Skill, ...] = (
    inspect_routing,
    inspect_batching,
    inspect_cache,
    inspect_execution,
    inspect_memory,
    inspect_observability,
)
"""The read skills that need no argument; each looks at one layer."""

SYMPTOM_SHARE = 0.4
"""What is left of a finding's confidence when another one explains it."""
INHERITED_MAX = 0.85
"""An explanation is an inference: neither it nor what it explains is so severe that a second look is skipped."""
BLIND_SHARE = 0.5
"""What is left of a finding's confidence when the metrics of its target are stale or not to be believed."""
EXPLAINS = frozenset({"slow_replica", "hot_replica", "lost_replica", "failing_replica", "uneven_weights"})
"""Troubles of one replica from which its own queue, slow tokens or pressure follow."""
ROOTLESS = EXPLAINS | {"replica_behind"}
"""What a root explains besides the trouble of other layers."""
DEEPER = frozenset({"memory_fragmented", "slow_execution_profile"})
"""Troubles of one replica from which it follows that it is slow."""
SYMPTOM_LAYERS = frozenset({Layer.BATCHING, Layer.CACHE, Layer.EXECUTION, Layer.EXTERNAL})
DOUBTFUL = frozenset({"metrics_stale", "metrics_implausible", "metrics_not_finite"})


def diagnose(snapshot: Snapshot, ctx: SkillContext) -> Diagnosis:
    """What every layer's inspection found in `snapshot`, ranked.

    Args:
        snapshot: the facts.
        ctx: what skills are given; its snapshot is replaced by `snapshot`.
    """
    looking = replace(ctx, snapshot=snapshot)
    found: list[Finding] = []
    for inspection in INSPECTIONS:
        findings = inspection(looking)
        if isinstance(findings, tuple):
            found += findings
    judged = _without_doubtful(_causes_first(as_routing(found, snapshot)))
    return Diagnosis(
        findings=rank(gathered(judged, snapshot)),
        missing=snapshot.missing,
        window_s=snapshot.window_s,
        time_s=snapshot.time_s,
    )


def finding_named(cause: str, ctx: SkillContext, target: str | None = None) -> Finding:
    """The finding of the present diagnosis with this cause, that on `target` if there is one.

    Raises:
        SkillError: there is none; the text lists those that exist.
    """
    findings = diagnose(ctx.snapshot, ctx).findings
    matching = [finding for finding in findings if finding.cause == cause]
    if not matching:
        known = ", ".join(dict.fromkeys(finding.cause for finding in findings)) or "none"
        raise SkillError(f"cause: no finding {cause!r} in the present diagnosis; its findings are {known}")
    return next((finding for finding in matching if finding.target == target), matching[0])


def _causes_first(found: list[Finding]) -> list[Finding]:
    """A replica's own routing trouble explains its queue; the explanation inherits the symptom's severity."""
    roots = {f.target: f for f in found if f.cause in EXPLAINS and f.severity >= HEALTHY_BELOW and f.target != FLEET}
    roots |= {f.target: f for f in found if f.cause in DEEPER and f.severity >= HEALTHY_BELOW}
    judged, inherited = [], dict.fromkeys(roots, 0.0)
    for finding in found:
        root = roots.get(finding.target)
        if root is not None and finding is not root and (finding.layer in SYMPTOM_LAYERS or finding.cause in ROOTLESS):
            severity = min(finding.severity, INHERITED_MAX)
            inherited[finding.target] = max(inherited[finding.target], severity)
            finding = replace(finding, severity=severity, confidence=finding.confidence * SYMPTOM_SHARE)
        judged.append(finding)
    return [
        replace(f, severity=max(f.severity, inherited[f.target])) if roots.get(f.target) is f else f for f in judged
    ]


def _without_doubtful(found: list[Finding]) -> list[Finding]:
    doubtful = {finding.target for finding in found if finding.cause in DOUBTFUL}
    return [
        replace(finding, confidence=finding.confidence * BLIND_SHARE)
        if finding.layer is not Layer.OBSERVABILITY and finding.target in doubtful
        else finding
        for finding in found
    ]
