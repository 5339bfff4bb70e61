"""Speculative decoding: are drafted tokens accepted?"""

from harness.diagnosis import Finding
from stack.layer import Layer
from stack.snapshot import Fact, Signal, Snapshot

ENOUGH_DRAFTED = 200.0
"""Drafted tokens from which an acceptance of 3 % and one of 10 % can be told apart."""
REJECTED_RATIO = 0.10
"""Fewer than one drafted token in ten accepted: verifying the other nine costs more than the one saves."""
WASTED_RATIO = 0.30
"""Below this most of a draft is thrown away; whether it still pays depends on its length and the batch."""


def speculation_findings(snapshot: Snapshot) -> list[Finding]:
    """Claims about the configuration of speculation, per replica.

    Acceptance is a property of draft and traffic, not of load, so the values since process start may be used.
    """
    found = []
    for replica in sorted({*snapshot.replicas, *snapshot.lifetime}):
        windowed, lifetime = snapshot.replicas.get(replica, {}), snapshot.lifetime.get(replica, {})
        ratio = windowed.get(Signal.DRAFT_ACCEPT_RATIO)
        facts = lifetime if ratio is None else windowed
        ratio, drafted = facts.get(Signal.DRAFT_ACCEPT_RATIO), facts.get(Signal.DRAFTED_TOKENS)
        finding = None if ratio is None or drafted is None else _finding(replica, ratio, drafted, facts is lifetime)
        if finding is not None:
            found.append(finding)
    return found


def _finding(replica: str, ratio: Fact, drafted: Fact, since_start: bool) -> Finding | None:
    if drafted.value < ENOUGH_DRAFTED or not 0 <= ratio.value < WASTED_RATIO:
        return None
    rejected = ratio.value < REJECTED_RATIO
    period = "since process start" if since_start else "in the window"
    return Finding(
        layer=Layer.EXECUTION,
        cause="speculation_rejected" if rejected else "speculation_wasteful",
        claim=(
            f"Configuration: of {drafted.value:g} tokens drafted on {replica} {period} {ratio.value:.1%} were accepted"
            + (
                "; drafts are almost never right and cost a verification each."
                if rejected
                else ": drafts are too long."
            )
        ),
        severity=0.6 if rejected else 0.35,
        confidence=0.8 if rejected else 0.6,
        tunable=rejected,
        target=replica,
        evidence={
            "draft_accept_ratio": ratio.value,
            "drafted_tokens": drafted.value,
            "claim_about": "configuration",
            "period": period,
        },
        advice="" if rejected else "Ask whoever starts the engines to draft fewer tokens (num_speculative_tokens).",
    )
