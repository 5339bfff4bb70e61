"""Is the KV cache too small for the load, and do cached prefixes help?"""

from harness.diagnosis import Finding
from skills.prefix_reuse import prefix_findings
from skills.pressure import Pressure, pressure_of
from skills.promise import first_token, token_time, unit, worst_severity
from skills.replica import Replica, replicas_of
from skills.skill import SkillContext, skill
from stack.layer import Layer
from stack.snapshot import Signal

GRAVE_SHARE = 0.2
"""One request in five preempted: each pays its prefill again, and what it recomputes takes the place of new work."""
STORM_FLOOR = 0.25
"""Severity of a single preemption among many requests: worth showing, not acting on."""
BRIM_RATIO = 0.95
"""So full that the next answers to grow must preempt others."""
PAST_SEVERITY = 0.35


@skill(effect="read", layer=Layer.CACHE)
def inspect_cache(ctx: SkillContext) -> tuple[Finding, ...]:
    """Report KV-cache pressure, preemptions, prefix hits, the most reused prefixes and what evicting them costs.

    Look here before anything that lets more requests run at once.
    """
    pressed = [found for replica in replicas_of(ctx.snapshot) if (found := kv_finding(replica, ctx)) is not None]
    return (*pressed, *prefix_findings(ctx))


def kv_finding(replica: Replica, ctx: SkillContext) -> Finding | None:
    """KV pressure on one replica: now, within the window but over, or None."""
    pressure = pressure_of(replica)
    if not pressure.seen:
        return None
    held_back = _held_back(replica)
    if not pressure.now and not (held_back and _late(replica, ctx)):
        return _past(replica, pressure)
    return Finding(
        layer=Layer.CACHE,
        cause="kv_blocks_held_back" if held_back else "kv_pressure",
        claim=_claim(replica, pressure),
        severity=_severity(replica, pressure, ctx),
        confidence=_confidence(pressure),
        tunable=True,
        target=replica.name,
        evidence=_evidence(replica, pressure),
    )


def _severity(replica: Replica, pressure: Pressure, ctx: SkillContext) -> float:
    level = (pressure.usage_ratio if pressure.now else pressure.peak_ratio) or 0.0
    by_level = 0.1 + 0.5 * unit((level - 0.8) / 0.2) + (0.15 if pressure.rising else 0.0)
    if level < BRIM_RATIO:
        by_level = min(by_level, 0.4 if pressure.rising else 0.28)
    by_preemptions = 0.0
    if pressure.preempted_share:
        by_preemptions = STORM_FLOOR + 0.65 * unit(pressure.preempted_share / GRAVE_SHARE)
    own = max(by_level, by_preemptions)
    if not (
        pressure.preempted_share >= GRAVE_SHARE / 10 or (level >= BRIM_RATIO and (_waits(replica) or not pressure.now))
    ):
        return own
    return max(own, worst_severity(first_token(replica, ctx.slo), token_time(replica, ctx.slo)))


def _waits(replica: Replica) -> bool:
    return replica.amount(Signal.WAITING) > 0


def _confidence(pressure: Pressure) -> float:
    """Full pool and preemptions confirm each other; either alone is a little less sure."""
    both = pressure.usage_ratio is not None and bool(pressure.preemptions)
    return 0.95 if both else 0.85


def _held_back(replica: Replica) -> bool:
    usable = replica.setting("usable_kv_blocks_ratio")
    return isinstance(usable, (int, float)) and usable < 1.0


def _late(replica: Replica, ctx: SkillContext) -> bool:
    """Whether first tokens came later than promised: then pressure in bursts is a problem although it is over."""
    promised = first_token(replica, ctx.slo)
    return promised is not None and promised.ratio >= 1


def _claim(replica: Replica, pressure: Pressure) -> str:
    parts = []
    if pressure.usage_ratio is not None:
        before = "" if pressure.start_ratio is None else f"{pressure.start_ratio:.0%} to "
        peak = "" if pressure.now or pressure.peak_ratio is None else f" with a peak of {pressure.peak_ratio:.0%}"
        parts.append(f"KV use {before}{pressure.usage_ratio:.0%}{peak}")
    if pressure.preemptions:
        parts.append(f"{pressure.preemptions:g} preemptions in the window")
    if _waits(replica):
        parts.append(f"{replica.amount(Signal.WAITING):g} requests waiting for blocks")
    return (
        f"{replica.name} is bound by KV memory: {', '.join(parts)}; a bigger batch would make it worse, so the cache "
        "comes before the batch."
    )


def _evidence(replica: Replica, pressure: Pressure) -> dict[str, float | str | None]:
    return {
        "kv_usage_ratio": pressure.usage_ratio,
        "kv_usage_start_ratio": pressure.start_ratio,
        "kv_usage_peak_ratio": pressure.peak_ratio,
        "preemptions": pressure.preemptions,
        "preempted_share": pressure.preempted_share,
        "running_requests": replica.value(Signal.RUNNING),
        "waiting_requests": replica.value(Signal.WAITING),
    }


def _past(replica: Replica, pressure: Pressure) -> Finding:
    """Pressure that is over: it ranks below what binds now."""
    severity = PAST_SEVERITY if pressure.preempted_share >= GRAVE_SHARE / 2 else 0.2
    return Finding(
        layer=Layer.CACHE,
        cause="kv_pressure_past",
        claim=(
            f"{replica.name} was short of KV blocks earlier in the window ({pressure.preemptions or 0:g} preemptions, "
            f"peak {pressure.peak_ratio or 0:.0%}); at its end use is {pressure.usage_ratio or 0:.0%}."
        ),
        severity=severity,
        confidence=0.6,
        tunable=False,
        target=replica.name,
        evidence=_evidence(replica, pressure),
        advice="Nothing to change for it now: look again in the next window.",
    )
