"""Requests that wait before any engine has them: the gateway's own cap, more load than capacity, a slow front end."""

from harness.diagnosis import Finding
from skills.pressure import FULL_RATIO, room_for_more
from skills.promise import first_token, miss_severity, unit
from skills.queue import draining
from skills.replica import Replica, replicas_of
from skills.skill import SkillContext
from stack.layer import Layer
from stack.snapshot import FLEET, Signal

QUEUE_MIN = 2.0
ENOUGH_REQUESTS = 50.0
UNACCOUNTED_RATIO = 3.0
"""TTFT this many times what the engine spends on queueing and prefill is spent before the engine."""
SHED_SHARE = 0.01


def gateway_findings(ctx: SkillContext) -> list[Finding]:
    """Claims about the way to the engines."""
    fleet = Replica(ctx.snapshot)
    found = [_queue(fleet, ctx), _front_end(fleet, ctx), _shed(fleet)]
    return [finding for finding in found if finding is not None]


def _queue(fleet: Replica, ctx: SkillContext) -> Finding | None:
    queue = fleet.fact(Signal.GATEWAY_QUEUE)
    if queue is None or queue.value < QUEUE_MIN or draining(queue):
        return None
    replicas = replicas_of(ctx.snapshot)
    free = bool(replicas) and all(room_for_more(r) and r.amount(Signal.WAITING) < QUEUE_MIN for r in replicas)
    inside = sum(replica.amount(Signal.RUNNING) for replica in replicas)
    promised = first_token(fleet, ctx.slo)
    length = 0.3 + 0.5 * unit(queue.value / max(1.0, inside))
    return Finding(
        layer=Layer.ROUTING,
        cause="gateway_cap_binds" if free else "overload",
        claim=(
            f"{queue.value:g} requests wait at the gateway "
            + (
                "while every engine has free blocks and an empty queue: the gateway's own caps bind."
                if free
                else f"and engines have no room (KV use {fleet.amount(Signal.KV_USAGE_RATIO):.0%}): overload."
            )
        ),
        severity=max(length, 0.0 if promised is None else miss_severity(promised.ratio)),
        confidence=0.75 if free else 0.6,
        tunable=True,
        target=FLEET,
        evidence={
            "gateway_queue_requests": queue.value,
            "gateway_queue_start_requests": queue.start,
            "running_requests": inside,
            "kv_usage_ratio": fleet.value(Signal.KV_USAGE_RATIO),
            "kv_watermark_ratio": FULL_RATIO,
        },
    )


def _front_end(fleet: Replica, ctx: SkillContext) -> Finding | None:
    """First tokens are late although no engine keeps requests waiting."""
    promised = first_token(fleet, ctx.slo)
    mean, queued, prefill = (
        fleet.value(signal) for signal in (Signal.TTFT_MEAN_S, Signal.QUEUE_MEAN_S, Signal.PREFILL_MEAN_S)
    )
    waiting = fleet.fact(Signal.WAITING)
    if promised is None or promised.ratio <= 1.0 or mean is None or queued is None or prefill is None:
        return None
    calm = waiting is not None and max(waiting.value, waiting.peak or 0.0, waiting.start or 0.0) < 1
    if not calm or fleet.amount(Signal.FINISHED) < ENOUGH_REQUESTS or mean < UNACCOUNTED_RATIO * (queued + prefill):
        return None
    return Finding(
        layer=Layer.DATA_PATH,
        cause="front_end_delay",
        claim=(
            f"First tokens take {mean:.2f} s on average, but engines queue for {queued:.2f} s and prefill for "
            f"{prefill:.2f} s and nothing waits in them: the time is spent before the engine."
        ),
        severity=promised.severity,
        confidence=0.7,
        tunable=False,
        evidence={"ttft_mean_s": mean, "queue_mean_s": queued, "prefill_mean_s": prefill, **promised.evidence},
        advice="Look at the API server's CPU, tokenising and image preprocessing, and proxies; more API servers help.",
    )


def _shed(fleet: Replica) -> Finding | None:
    """Load that is refused on purpose: context, as shedding is a guard at work."""
    shed, arrived = fleet.value(Signal.SHED), fleet.value(Signal.ARRIVED)
    if not shed or not arrived or shed < SHED_SHARE * arrived:
        return None
    return Finding(
        layer=Layer.ROUTING,
        cause="load_is_shed",
        claim=f"{shed:g} of {arrived:g} requests were refused at the gateway in the window.",
        severity=0.25,
        confidence=0.9,
        tunable=False,
        evidence={"shed_requests": shed, "arrived_requests": arrived},
        advice="Where this lasts, more capacity is the remedy: another replica, FP8 weights or a bigger GPU.",
    )
