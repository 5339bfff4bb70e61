"""Is token generation itself slow: wasted speculation, a wrong profile, or hardware that slowed down?"""

from statistics import median

from harness.diagnosis import Finding
from skills.pressure import pressure_of
from skills.promise import token_time
from skills.replica import Replica, replicas_of
from skills.skill import SkillContext, skill
from skills.speculation import speculation_findings
from stack.layer import Layer
from stack.snapshot import FLEET, Fact, Signal

SLOW_RATIO = 1.2
"""A fifth over the promise: below that the mean of one window can differ by chance."""
SMALL_BATCH = 8.0
"""A decode step of so few requests costs hardly more than one of a single request: weights are read once for all."""
MOSTLY_DECODE = 2.0
"""Prompt tokens per answer token below which prefill cannot be what slows the steps."""
PREFILL_RULES = 12.0
"""Prompt tokens per answer token above which a step's length is its prompts' length."""
SLOWED_RATIO = 1.4
UNUSUAL_RATIO = 1.3
"""Of the usual at the same work, on every replica; minute means of a healthy fleet stay within a fifth of it."""
STEADY_RATIO = 1.1
"""Load counts as unchanged while arrivals, prompt tokens and answer tokens differ by at most a tenth between halves."""
ENOUGH_TOKENS = 2000.0
HARDWARE = (
    "Ask the operators of the machines: GPU clocks, temperature, power limit, throttle reasons, ECC errors, other "
    "processes on the device or host, and what was deployed just before."
)


@skill(effect="read", layer=Layer.EXECUTION)
def inspect_execution(ctx: SkillContext) -> tuple[Finding, ...]:
    """Report barely accepted speculation, slow tokens at a small batch, and a slowdown without a change of load.

    Causes in hardware are reported as not tunable, with whom to ask.
    """
    slow = [found for replica in replicas_of(ctx.snapshot) if (found := _slow_tokens(replica, ctx)) is not None]
    slowed = _slowed(ctx)
    return (*speculation_findings(ctx.snapshot), *slow, *(() if slowed is None else (slowed,)))


def _slow_tokens(replica: Replica, ctx: SkillContext) -> Finding | None:
    pace, running = token_time(replica, ctx.slo), replica.running_mean
    if pace is None or pace.ratio < SLOW_RATIO or running is None or not 0 < running <= SMALL_BATCH:
        return None
    prompt, answered = replica.computed_prompt_tokens or 0.0, replica.amount(Signal.GENERATION_TOKENS)
    if answered < ENOUGH_TOKENS / 10 or prompt > MOSTLY_DECODE * answered or pressure_of(replica).seen:
        return None
    profile = replica.setting("execution_profile")
    wrong = profile is not None and profile != "default"
    return Finding(
        layer=Layer.EXECUTION if wrong else Layer.EXTERNAL,
        cause="slow_execution_profile" if wrong else "slow_tokens",
        claim=(
            f"{replica.name} makes a token every {pace.measured_s * 1000:.0f} ms with only {running:.0f} running "
            f"({pace.limit_s * 1000:.0f} ms promised), little prefill and free KV"
            + (f"; its execution profile is {profile!r}." if wrong else ": neither batch nor memory explains it.")
        ),
        severity=pace.severity,
        confidence=0.8 if wrong else 0.6,
        tunable=wrong,
        target=replica.name,
        evidence={
            "running_requests": running,
            "kv_usage_ratio": replica.value(Signal.KV_USAGE_RATIO),
            "generation_tokens": answered,
            "execution_profile": profile if isinstance(profile, str) else None,
            **pace.evidence,
        },
        advice="" if wrong else HARDWARE,
    )


def _slowed(ctx: SkillContext) -> Finding | None:
    """Every replica's token time rose, within the window or against the usual, while the work stayed the same."""
    replicas = [r for r in replicas_of(ctx.snapshot) if r.amount(Signal.GENERATION_TOKENS) >= ENOUGH_TOKENS]
    if not replicas or any(pressure_of(replica).seen or _mostly_prefill(replica) for replica in replicas):
        return None
    ratios = [_late_over_early(replica.fact(Signal.ITL_MEAN_S)) for replica in replicas]
    known = [ratio for ratio in ratios if ratio is not None]
    fleet = Replica(ctx.snapshot)
    if len(known) == len(replicas) and min(known) >= SLOWED_RATIO and _steady(fleet):
        return _slowdown(ctx, median(known), f"within the window on all {len(known)} replicas")
    usual_s, now_s = ctx.usual_token_time_s, fleet.value(Signal.ITL_MEAN_S)
    times = [replica.amount(Signal.ITL_MEAN_S) for replica in replicas]
    if not usual_s or not now_s or min(times) < UNUSUAL_RATIO * usual_s:
        return None
    return _slowdown(ctx, now_s / usual_s, f"against the usual {usual_s * 1000:.1f} ms on all {len(times)} replicas")


def _slowdown(ctx: SkillContext, ratio: float, where: str) -> Finding:
    pace, known = token_time(Replica(ctx.snapshot), ctx.slo), replicas_of(ctx.snapshot)
    return Finding(
        layer=Layer.EXTERNAL,
        cause="fleet_slowdown",
        claim=(
            f"Token time rose {ratio:.1f} times {where} while arrivals and prompt tokens are the same: the hardware or "
            "the host became slower, not the load heavier."
        ),
        severity=max(0.4, 0.0 if pace is None else pace.severity),
        confidence=0.7 if len(known) > 1 else 0.5,
        tunable=False,
        target=FLEET,
        evidence={"token_time_ratio": ratio, **({} if pace is None else pace.evidence)},
        advice=HARDWARE,
    )


def _mostly_prefill(replica: Replica) -> bool:
    """Whether token times follow the prompts that happen to be prefilled beside them, rather than the machine."""
    prompt = replica.computed_prompt_tokens
    return prompt is None or prompt > PREFILL_RULES * replica.amount(Signal.GENERATION_TOKENS)


def _steady(fleet: Replica) -> bool:
    counts = (Signal.ARRIVED, Signal.PROMPT_TOKENS)
    facts = [fleet.fact(signal) for signal in counts]
    return all(fact is not None and _same(fact) for fact in facts)


def _same(count: Fact) -> bool:
    """Whether a count's halves are alike."""
    if count.start is None or count.start <= 0:
        return False
    late = count.value - count.start
    return 1 / STEADY_RATIO <= late / count.start <= STEADY_RATIO


def _late_over_early(mean: Fact | None) -> float | None:
    """Second half over first half of a mean whose whole and first half are known; the halves weigh the same."""
    if mean is None or mean.start is None or mean.start <= 0:
        return None
    return (2 * mean.value - mean.start) / mean.start
