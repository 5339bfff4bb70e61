"""Is the batch too small for the load, or does prompt work starve running answers?"""

from harness.diagnosis import Finding
from skills.prefill import prefill_findings
from skills.pressure import FULL_RATIO, pressure_of
from skills.promise import Promised, first_token, miss_severity, unit
from skills.queue import standing
from skills.replica import Replica, replicas_of
from skills.skill import SkillContext, skill
from stack.layer import Layer
from stack.snapshot import Signal

AT_CAP_RATIO = 0.95
"""A finished request's slot is empty until the next step, so a binding cap is seen a little below itself."""
PLATEAU_RATIO = 0.97
QUEUE_MIN = 2.0
"""One waiting request is the one that arrived since the last step."""
QUEUE_SHARE = 0.1
"""A queue shorter than a tenth of what runs is gone within a fraction of an answer's length."""
QUEUE_PART = 0.5
"""Share of the time to first token from which on waiting, not computing, is what makes it late."""


@skill(effect="read", layer=Layer.BATCHING)
def inspect_batching(ctx: SkillContext) -> tuple[Finding, ...]:
    """Report whether the running-request cap binds while KV is free, and whether prefill starves decode or queues up.

    A queue with a full KV pool is not reported here: that is the cache's, and a bigger batch would make it worse.
    """
    found: list[Finding] = []
    for replica in replicas_of(ctx.snapshot):
        bound = cap_finding(replica, ctx)
        found += prefill_findings(replica, ctx, slots_bind=bound is not None)
        if bound is not None:
            found.append(bound)
    return tuple(found)


def cap_finding(replica: Replica, ctx: SkillContext) -> Finding | None:
    """The cap on running requests makes requests wait although there are free blocks for them; else None."""
    waiting, running = standing(replica), replica.amount(Signal.RUNNING)
    usage, promised = replica.value(Signal.KV_USAGE_RATIO), first_token(replica, ctx.slo)
    stands = waiting >= max(QUEUE_MIN, QUEUE_SHARE * running) and _at_cap(replica, waiting)
    if not stands and not _bound_in_bursts(replica, promised):
        return None
    pressure = pressure_of(replica)
    if pressure.now or (usage is not None and usage >= FULL_RATIO):
        return None
    cap = "" if replica.slots is None else f" of {replica.slots:g} allowed"
    free = "KV use is unknown" if usage is None else f"KV use is only {usage:.0%}"
    return Finding(
        layer=Layer.BATCHING,
        cause="running_cap_binds",
        claim=_claim(replica, stands, f"{running:g} requests{cap} while {waiting:g} wait", free),
        severity=_severity(waiting, running, None if promised is None else promised.ratio),
        confidence=_confidence(replica, usage),
        tunable=usage is not None,
        target=replica.name,
        evidence={
            "running_requests": running,
            "running_request_cap": replica.slots,
            "waiting_requests": waiting,
            "kv_usage_ratio": usage,
            "kv_usage_peak_ratio": pressure.peak_ratio,
            **({} if promised is None else promised.evidence),
        },
        advice="" if usage is not None else "Measure KV use first: without it a bigger batch would be a blind guess.",
    )


def _claim(replica: Replica, stands: bool, now: str, free: str) -> str:
    if stands:
        return f"{replica.name} runs {now}, and {free}: slots bind, not memory."
    queue_s, slots = replica.amount(Signal.QUEUE_P95_S), replica.slots or 0.0
    return (
        f"{replica.name} was at its cap of {slots:g} running requests in bursts, requests queued {queue_s:.1f} s for a "
        f"slot (P95), and {free}: slots bind, not memory."
    )


def _bound_in_bursts(replica: Replica, promised: Promised | None) -> bool:
    """A known cap was reached within the window, and the wait for a slot is most of a first token that came too late.

    Between two bursts the queue is empty, so that the last moment of a window tells nothing.
    """
    running, queue_s = replica.fact(Signal.RUNNING), replica.value(Signal.QUEUE_P95_S)
    if running is None or running.peak is None or replica.slots is None or promised is None or queue_s is None:
        return False
    reached = _fills(running.peak, replica.slots)
    peak = replica.kv_peak_ratio
    free = peak is not None and peak < FULL_RATIO
    return reached and free and promised.ratio >= 1 and queue_s >= QUEUE_PART * promised.measured_s


def _at_cap(replica: Replica, waiting: float) -> bool:
    """Running at a known cap; else on a plateau: as many at the end as at the start and never more between."""
    running = replica.fact(Signal.RUNNING)
    if running is None or running.value < 1:
        return False
    if replica.slots is not None:
        return _fills(running.value, replica.slots)
    if running.start is None:
        return False
    flat = min(running.value, running.start) >= PLATEAU_RATIO * max(running.peak or 0.0, running.value, running.start)
    queue = replica.fact(Signal.WAITING)
    stood = queue is not None and (queue.start or 0.0) > 0
    return flat and (stood or waiting >= running.value / 4)


def _fills(running: float, slots: float) -> bool:
    return running >= min(AT_CAP_RATIO * slots, max(1.0, slots - 1.0))


def _severity(waiting: float, running: float, ttft_ratio: float | None) -> float:
    """By TTFT where it is known: a queue within the promise is only a warning."""
    length = unit(waiting / max(1.0, running))
    if ttft_ratio is None:
        return 0.3 + 0.5 * length
    return max(0.3 + 0.15 * length, miss_severity(ttft_ratio))


def _confidence(replica: Replica, usage: float | None) -> float:
    if usage is None:
        return 0.5
    known = 0.05 if replica.slots is not None else 0.0
    return 0.75 + known + 0.15 * unit((FULL_RATIO - usage) / FULL_RATIO)
