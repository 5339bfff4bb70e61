"""A replica that alone cannot keep up with its prompts is first of all a question of routing."""

from dataclasses import replace

from harness.diagnosis import HEALTHY_BELOW, Finding
from skills.replica import Replica, peers_of
from stack.layer import Layer
from stack.snapshot import Signal, Snapshot

COMPUTE = frozenset({"prefill_backlog", "prefill_starves_decode"})
SEVERITY_MAX = 0.85
"""It may be one burst: never so severe that a second look is skipped."""
CONFIDENCE = 0.45
ENOUGH_PEERS = 2
SETTINGS = ("tokens_per_step", "long_prefill_threshold_tokens", "running_request_cap", "execution_profile")


def as_routing(found: list[Finding], snapshot: Snapshot) -> list[Finding]:
    """`found`, with a lone replica's compute trouble told as routing trouble.

    Where its peers have the same settings and no trouble of their own, the batch settings are not at fault: the
    replica is slower, or it was sent harder requests.
    """
    behind = {f.target for f in found if f.layer in (Layer.BATCHING, Layer.CACHE) and f.severity >= HEALTHY_BELOW}
    return [
        _behind(finding) if finding.cause in COMPUTE and _alone(finding.target, behind, snapshot) else finding
        for finding in found
    ]


def _alone(target: str, behind: set[str], snapshot: Snapshot) -> bool:
    replica = Replica(snapshot, target)
    peers = peers_of(replica)
    serving = [peer for peer in peers if peer.value(Signal.RUNNING) is not None]
    if len(serving) < ENOUGH_PEERS or any(peer.name in behind for peer in serving):
        return False
    return all(peer.setting(name) == replica.setting(name) for peer in serving for name in SETTINGS)


def _behind(finding: Finding) -> Finding:
    return replace(
        finding,
        layer=Layer.ROUTING,
        cause="replica_behind",
        claim=f"{finding.claim} Its peers keep up with the same settings: it is slower, or was sent harder requests.",
        severity=min(finding.severity, SEVERITY_MAX),
        confidence=min(finding.confidence, CONFIDENCE),
    )
