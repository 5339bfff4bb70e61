"""Is device memory running out or fragmented?"""

from harness.diagnosis import Finding
from skills.promise import unit
from skills.replica import Replica, replicas_of
from skills.skill import SkillContext, skill
from stack.layer import Layer
from stack.snapshot import FLEET, Signal

FREE_MIN_BYTES = 2.0 * 2**30
FREE_MIN_RATIO = 0.05
"""The floor of the gate: vLLM allocates its pool at start, what is left is all that activations and graphs have."""
FRAGMENTED_RATIO = 0.3
"""Reserved but unusable share of device memory from which an allocation may fail although enough is free in sum."""
GiB = 2**30


@skill(effect="read", layer=Layer.MEMORY)
def inspect_memory(ctx: SkillContext) -> tuple[Finding, ...]:
    """Report free device memory and fragmentation; without a device signal, say that KV figures stand in for them."""
    replicas = replicas_of(ctx.snapshot)
    found = [
        finding for replica in replicas for finding in (_low(replica), _fragmented(replica)) if finding is not None
    ]
    if any(replica.value(Signal.DEVICE_FREE_BYTES) is not None for replica in replicas):
        return tuple(found)
    return (*found, _unmeasured(Replica(ctx.snapshot)))


def _low(replica: Replica) -> Finding | None:
    free, total = replica.value(Signal.DEVICE_FREE_BYTES), replica.value(Signal.DEVICE_TOTAL_BYTES)
    if free is None:
        return None
    floor = max(FREE_MIN_BYTES, FREE_MIN_RATIO * (total or 0.0))
    if free >= floor:
        return None
    fact = replica.fact(Signal.DEVICE_FREE_BYTES)
    shrinking = fact is not None and fact.start is not None and fact.start - free >= 0.1 * floor
    return Finding(
        layer=Layer.MEMORY,
        cause="device_memory_low",
        claim=f"{replica.name} has {free / GiB:.1f} GiB of device memory left, floor {floor / GiB:.1f} GiB.",
        severity=(0.6 if shrinking else 0.25) + 0.4 * unit(1.0 - free / (0.5 * floor)) * (1.0 if shrinking else 0.5),
        confidence=0.8,
        tunable=shrinking,
        target=replica.name,
        evidence={"device_free_bytes": free, "device_total_bytes": total, "floor_bytes": floor},
        advice="" if shrinking else "Ask whoever starts the engines to lower gpu_memory_utilization by a few percent.",
    )


def _fragmented(replica: Replica) -> Finding | None:
    fragmented = replica.value(Signal.FRAGMENTATION_RATIO)
    if fragmented is None or fragmented < FRAGMENTED_RATIO:
        return None
    return Finding(
        layer=Layer.MEMORY,
        cause="memory_fragmented",
        claim=f"{fragmented:.0%} of the device memory reserved on {replica.name} is in fragments; a restart heals it.",
        severity=0.35 + 0.5 * unit((fragmented - FRAGMENTED_RATIO) / (1 - FRAGMENTED_RATIO)),
        confidence=0.7,
        tunable=True,
        target=replica.name,
        evidence={
            "memory_fragmentation_ratio": fragmented,
            "device_free_bytes": replica.value(Signal.DEVICE_FREE_BYTES),
            "running_requests": replica.value(Signal.RUNNING),
        },
    )


def _unmeasured(fleet: Replica) -> Finding:
    usage = fleet.value(Signal.KV_USAGE_RATIO)
    figure = "which is not known either" if usage is None else f"now {usage:.0%}"
    return Finding(
        layer=Layer.MEMORY,
        cause="device_memory_unmeasured",
        claim=f"No device memory signal: the memory layer is judged by KV use alone, {figure}.",
        severity=0.0,
        confidence=1.0,
        tunable=False,
        target=FLEET,
        evidence={"kv_usage_ratio": usage},
        advice="Export device memory (nvidia-ml-py) to tell fragmentation and a shrinking reserve apart.",
    )
