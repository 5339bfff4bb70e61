"""Prompt work against running answers: both share the token budget of each engine step."""

from harness.diagnosis import Finding
from skills.pressure import pressure_of
from skills.promise import Promised, first_token, token_time, unit
from skills.queue import standing
from skills.replica import Replica
from skills.skill import SkillContext
from stack.layer import Layer
from stack.snapshot import Signal

HEAVY_RATIO = 4.0
"""Prompt tokens per answer token from which steps are mostly prefill: four fifths of the work."""
QUEUE_MIN = 2.0
PREFILL_SHARE = 0.5
"""Of TTFT: where prefill itself takes more than half, neither slots nor memory hold the request up."""
ENOUGH_TOKENS = 200.0
"""Answer tokens below which a mean token time rests on a handful of answers."""


def prefill_findings(replica: Replica, ctx: SkillContext, *, slots_bind: bool) -> list[Finding]:
    """At most one claim: running answers are starved, or prompts queue for compute."""
    starved = _starved(replica, ctx)
    if starved is not None:
        return [starved]
    backlog = None if slots_bind else _backlog(replica, ctx)
    return [] if backlog is None else [backlog]


def _starved(replica: Replica, ctx: SkillContext) -> Finding | None:
    pace, share = token_time(replica, ctx.slo), _prompt_per_answer_token(replica)
    if pace is None or pace.ratio <= 1.0 or share is None or share < HEAVY_RATIO:
        return None
    if replica.amount(Signal.GENERATION_TOKENS) < ENOUGH_TOKENS or pressure_of(replica).now:
        return None
    waiting = replica.amount(Signal.WAITING)
    return Finding(
        layer=Layer.BATCHING,
        cause="prefill_starves_decode",
        claim=(
            f"{replica.name} works on {share:.0f} prompt tokens for each answer token, and running answers get a token "
            f"only every {pace.measured_s * 1000:.0f} ms (promised {pace.limit_s * 1000:.0f} ms); {waiting:g} wait."
        ),
        severity=pace.severity,
        confidence=0.7 + 0.2 * unit((share - HEAVY_RATIO) / (4 * HEAVY_RATIO)),
        tunable=True,
        target=replica.name,
        evidence={
            "prompt_tokens_per_answer_token": share,
            "prompt_tokens_per_s": replica.snapshot.per_s(Signal.PROMPT_TOKENS, replica.name),
            "generation_tokens_per_s": replica.snapshot.per_s(Signal.GENERATION_TOKENS, replica.name),
            "step_tokens_mean": replica.value(Signal.STEP_TOKENS_MEAN),
            "waiting_requests": waiting,
            "kv_usage_ratio": replica.value(Signal.KV_USAGE_RATIO),
            **pace.evidence,
        },
    )


def _backlog(replica: Replica, ctx: SkillContext) -> Finding | None:
    """Requests wait, or take long to prefill, with slots and blocks free: compute for prompts is what is short."""
    promised, pressure = first_token(replica, ctx.slo), pressure_of(replica)
    if promised is None or promised.ratio <= 1.0 or pressure.now or pressure.usage_ratio is None:
        return None
    waiting = standing(replica)
    prefill_s = replica.value(Signal.PREFILL_MEAN_S)
    long_prefill = prefill_s is not None and prefill_s >= PREFILL_SHARE * promised.measured_s
    if waiting < QUEUE_MIN and not long_prefill:
        return None
    return Finding(
        layer=Layer.BATCHING,
        cause="prefill_backlog",
        claim=_backlog_claim(replica, promised, waiting),
        severity=promised.severity,
        confidence=0.65 if waiting >= QUEUE_MIN else 0.5,
        tunable=True,
        target=replica.name,
        evidence={
            "waiting_requests": waiting,
            "running_requests": replica.value(Signal.RUNNING),
            "kv_usage_ratio": pressure.usage_ratio,
            "prefill_mean_s": prefill_s,
            "prompt_tokens_per_s": replica.snapshot.per_s(Signal.PROMPT_TOKENS, replica.name),
            **promised.evidence,
        },
    )


def _backlog_claim(replica: Replica, promised: Promised, waiting: float) -> str:
    return (
        f"{replica.name}: first tokens take {promised.measured_s:.2f} s ({promised.limit_s:.2f} s promised) with slots "
        f"and KV blocks free and {waiting:g} waiting: prompts queue for compute."
    )


def _prompt_per_answer_token(replica: Replica) -> float | None:
    prompt, answered = replica.computed_prompt_tokens, replica.value(Signal.GENERATION_TOKENS)
    return None if prompt is None or not answered else prompt / answered
