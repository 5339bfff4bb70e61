"""Prefix cache: how much prompt work it saves, whether that changed, and who is scattered over whom."""

from collections import Counter as Tally

from harness.diagnosis import Finding
from skills.pressure import pressure_of
from skills.promise import first_token
from skills.replica import Replica, replicas_of
from skills.skill import SkillContext
from stack.layer import Layer
from stack.snapshot import FLEET, Signal

DROP_RATIO = 0.15
"""The window's ratio below its first half's by this much means that the second half lost twice as much."""
ENOUGH_TOKENS = 10_000.0
"""Prompt tokens looked up below which a hit ratio is the luck of a few long prompts."""
SHOWN = 3
AFFINE = frozenset({"session_hash", "prefix_aware"})
"""Routing policies that send a prefix where it is cached."""
SCATTERED_SHARE = 0.5
COSTLY_COPIES_SHARE = 0.1
"""Of the prompt tokens computed in the window: a short system prompt that every replica holds costs nothing."""


def prefix_findings(ctx: SkillContext) -> tuple[Finding, ...]:
    """Claims about prefix reuse over the fleet."""
    fleet = Replica(ctx.snapshot)
    found = [_disabled(ctx), _scattered(ctx), _dropped(fleet, ctx), _effect(fleet, ctx)]
    return tuple(finding for finding in found if finding is not None)


def _dropped(fleet: Replica, ctx: SkillContext) -> Finding | None:
    hits = fleet.fact(Signal.PREFIX_HIT_RATIO)
    if hits is None or hits.start is None or fleet.amount(Signal.PREFIX_QUERIED_TOKENS) < ENOUGH_TOKENS:
        return None
    if hits.start - hits.value < DROP_RATIO:
        return None
    crowded = any(pressure_of(replica).seen for replica in replicas_of(ctx.snapshot))
    spread = len(ctx.snapshot.replicas) > 1 and not _affine(ctx)
    promised = first_token(fleet, ctx.slo)
    why = (
        "KV pressure evicts cached prefixes"
        if crowded
        else "requests may have stopped going where their prefix is cached"
        if spread
        else "the prompts themselves stopped sharing their beginning"
    )
    return Finding(
        layer=Layer.CACHE,
        cause="prefix_hits_dropped",
        claim=f"Prefix hits fell from {hits.start:.0%} to {hits.value:.0%} of prompt tokens over the window: {why}.",
        severity=max(0.35, 0.0 if promised is None else promised.severity),
        confidence=0.7 if crowded or not spread else 0.6,
        tunable=crowded or spread,
        evidence={
            "prefix_hit_start_ratio": hits.start,
            "prefix_hit_ratio": hits.value,
            **({} if promised is None else promised.evidence),
        },
        advice=""
        if crowded or spread
        else "Ask the client's owner what changed at the head of the prompt: a timestamp, an id, a system prompt.",
    )


def _scattered(ctx: SkillContext) -> Finding | None:
    """The same prefixes are reused on several replicas, each of which had to compute them."""
    holders = Tally(prefix for held in ctx.snapshot.prefixes.values() for prefix, _, _ in held)
    tokens = {prefix: size for held in ctx.snapshot.prefixes.values() for prefix, size, _ in held}
    twice = [prefix for prefix, count in holders.items() if count > 1]
    if len(ctx.snapshot.prefixes) < 2 or len(twice) < SCATTERED_SHARE * len(holders):
        return None
    copies = sum((holders[prefix] - 1) * tokens[prefix] for prefix in twice)
    promised, affine = first_token(Replica(ctx.snapshot), ctx.slo), _affine(ctx)
    computed = Replica(ctx.snapshot).computed_prompt_tokens
    costly = computed is not None and copies >= COSTLY_COPIES_SHARE * computed
    missing = costly and (promised is not None and promised.ratio > 1.0) and not affine
    return Finding(
        layer=Layer.CACHE,
        cause="prefix_scatter",
        claim=(
            f"{len(twice)} of the {len(holders)} most reused prefixes are cached on more than one replica: "
            f"{copies:g} tokens of blocks and prefill are spent on copies."
        ),
        severity=max(0.4, promised.severity) if missing and promised is not None else 0.2,
        confidence=0.6,
        tunable=not affine,
        evidence={
            "prefixes_on_several_replicas": float(len(twice)),
            "copied_tokens": float(copies),
            "computed_prompt_tokens": computed,
        },
    )


def _disabled(ctx: SkillContext) -> Finding | None:
    off = [
        name
        for name, told in ctx.snapshot.configuration.items()
        if str(told.get("enable_prefix_caching", "")).lower() == "false"
    ]
    if not off:
        return None
    return Finding(
        layer=Layer.CACHE,
        cause="prefix_caching_off",
        claim=f"Configuration: prefix caching is off on {', '.join(sorted(off))}, so shared prompts are recomputed.",
        severity=0.2,
        confidence=0.9,
        tunable=False,
        evidence={"replicas_without_prefix_cache": float(len(off))},
        advice="Ask whoever starts the engines whether it was switched off for a reason; it needs a restart.",
    )


def _effect(fleet: Replica, ctx: SkillContext) -> Finding | None:
    """What the cache saves and what evicting it would cost: context for every memory decision."""
    ratio, queried = fleet.value(Signal.PREFIX_HIT_RATIO), fleet.value(Signal.PREFIX_QUERIED_TOKENS)
    if ratio is None:
        return None
    saved = None if queried is None else ratio * queried
    held = sorted(
        ((hits * tokens, prefix, tokens, hits) for r in ctx.snapshot.prefixes.values() for prefix, tokens, hits in r),
        reverse=True,
    )[:SHOWN]
    evidence: dict[str, float | str | None] = {
        "prefix_hit_ratio": ratio,
        "prefix_queried_tokens": queried,
        "prefix_saved_tokens": saved,
    }
    evidence |= {f"evicting_{prefix}_costs_tokens": float(cost) for cost, prefix, _, _ in held}
    words = "".join(f"; {prefix} ({tokens} tokens) was reused {hits} times" for _, prefix, tokens, hits in held)
    return Finding(
        layer=Layer.CACHE,
        cause="prefix_reuse",
        claim=f"Cached prefixes answered {ratio:.0%} of the prompt tokens looked up in the window{words}.",
        severity=0.0,
        confidence=0.9,
        tunable=False,
        target=FLEET,
        evidence=evidence,
    )


def _affine(ctx: SkillContext) -> bool:
    return Replica(ctx.snapshot).setting("routing_policy") in AFFINE
