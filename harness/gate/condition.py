"""What state a replica is in, told by what it does and not by an open port. Unknown is neither healthy nor sick."""

import math
from statistics import median

from harness.policy import Policy
from stack.snapshot import Signal, Snapshot

ERRORS_MIN = 10.0
"""Errors below which a share of them says nothing."""
PRODUCED = (Signal.GENERATION_TOKENS, Signal.PROMPT_TOKENS, Signal.FINISHED)


def makes_progress(snapshot: Snapshot, replica: str) -> bool:
    """Whether it takes requests and either has none or got further with them in the window."""
    up, weight = snapshot.value(Signal.UP, replica), snapshot.value(Signal.ROUTING_WEIGHT, replica)
    if not all(told is None or (math.isfinite(told) and told > 0) for told in (up, weight)):
        return False
    if snapshot.settings.get("replica_state", {}).get(replica) == "drain":
        return False
    work = _work(snapshot, replica)
    return work is not None and (work == 0 or _produced(snapshot, replica) > 0)


def is_down(snapshot: Snapshot, replica: str) -> bool:
    """Whether the gateway says that it does not answer, so that it has no load to lose."""
    return snapshot.value(Signal.UP, replica) == 0


def sickness(snapshot: Snapshot, replica: str, policy: Policy) -> str | None:
    """Why it should get no new requests, in words with numbers; None where fresh facts do not show it."""
    if not _is_fresh(snapshot, replica, policy):
        return None
    if is_down(snapshot, replica):
        return "the gateway says that it is down"
    work = _work(snapshot, replica)
    told = [signal for signal in PRODUCED if snapshot.value(signal, replica) is not None]
    if work and told and _produced(snapshot, replica) == 0:
        return f"it has {work:g} requests and got no further with any in the window"
    return _failing(snapshot, replica, policy) or _crawling(snapshot, replica, policy)


def peers_median(snapshot: Snapshot, signal: Signal, replica: str) -> float | None:
    """The median of a signal over the other replicas; None where none of them tells it."""
    others = [_finite(snapshot, signal, other) for other in snapshot.replicas if other != replica]
    known = [value for value in others if value is not None]
    return median(known) if known else None


def _failing(snapshot: Snapshot, replica: str, policy: Policy) -> str | None:
    errors, finished = (_finite(snapshot, signal, replica) for signal in (Signal.ERRORS, Signal.FINISHED))
    if errors is None or finished is None or errors < ERRORS_MIN:
        return None
    share, limit = errors / (errors + finished), policy.verification.hard_stop_error_ratio
    return f"{share:.0%} of its responses are errors" if share > limit else None


def _crawling(snapshot: Snapshot, replica: str, policy: Policy) -> str | None:
    own, usual = _finite(snapshot, Signal.ITL_MEAN_S, replica), peers_median(snapshot, Signal.ITL_MEAN_S, replica)
    if own is None or not usual or own < policy.health.sick_token_time_ratio * usual:
        return None
    return f"its tokens take {own / usual:.1f} times as long as its peers'"


def _is_fresh(snapshot: Snapshot, replica: str, policy: Policy) -> bool:
    """Whether every fact of a replica is young."""
    ages = [fact.age_s for fact in snapshot.replicas.get(replica, {}).values()]
    return bool(ages) and all(age is not None and age <= policy.evidence.age_max_s for age in ages)


def _work(snapshot: Snapshot, replica: str) -> float | None:
    running, waiting = (_finite(snapshot, signal, replica) for signal in (Signal.RUNNING, Signal.WAITING))
    return None if running is None else running + (waiting or 0.0)


def _produced(snapshot: Snapshot, replica: str) -> float:
    return sum(_finite(snapshot, signal, replica) or 0.0 for signal in PRODUCED)


def _finite(snapshot: Snapshot, signal: Signal, replica: str) -> float | None:
    value = snapshot.value(signal, replica)
    return value if value is not None and math.isfinite(value) and value >= 0 else None
