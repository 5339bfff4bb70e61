"""The same trouble on most replicas is one trouble of the fleet."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

from harness.diagnosis import Finding
from skills.replica import replicas_of
from stack.snapshot import FLEET, Snapshot

MOST = 0.75
"""Share of the replicas from which a per-replica change would only be a fleet-wide one in pieces."""
ONE_BY_ONE = frozenset(
    {
        "slow_replica",
        "hot_replica",
        "lost_replica",
        "failing_replica",
        "uneven_weights",
        "replica_behind",
        "metrics_stale",
    }
)
"""Findings that compare a replica with its peers, or say which one to look at."""


def gathered(found: Iterable[Finding], snapshot: Snapshot) -> list[Finding]:
    """Findings of one cause on most of several replicas, as one finding that holds the worst one's numbers."""
    replicas = {replica.name for replica in replicas_of(snapshot)}
    groups: dict[str, list[Finding]] = defaultdict(list)
    kept: list[Finding] = []
    for finding in found:
        alone = finding.cause in ONE_BY_ONE or finding.target not in replicas
        (kept if alone else groups[finding.cause]).append(finding)
    for findings in groups.values():
        common = len(replicas) > 1 and len(findings) >= MOST * len(replicas)
        kept += [_common(findings, len(replicas))] if common else findings
    return kept


def _common(findings: list[Finding], replicas: int) -> Finding:
    worst = max(findings, key=lambda finding: finding.weight)
    return replace(
        worst,
        target=FLEET,
        claim=f"On {len(findings)} of {replicas} replicas, the worst: {worst.claim}",
        evidence={**worst.evidence, "replicas_concerned": float(len(findings)), "worst_replica": worst.target},
    )
