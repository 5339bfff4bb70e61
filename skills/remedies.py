"""Which values of which settings can help against a cause: wishes, before bounds, steps and authority are looked at."""

from collections.abc import Callable, Iterator, Mapping
from statistics import median
from types import MappingProxyType
from typing import TypeAlias

from harness.diagnosis import Finding
from skills.replica import Replica, peers_of
from skills.restart_worker import restart_obstacle
from skills.skill import SkillContext
from stack.catalogue import UNLIMITED, setting_named
from stack.setting import Value
from stack.snapshot import FLEET, Signal

Wish: TypeAlias = tuple[str, str, Value]
"""(setting, target, wanted value)."""
Remedy: TypeAlias = Callable[[Finding, SkillContext], Iterator[Wish]]

TOKENS_TO_TRY = (512.0, 768.0, 1024.0, 1536.0, 2048.0)
"""Found best in searches over many traffic mixes; the default of 8192 favours throughput over token times."""
SHED_RATIOS = (0.8, 0.6)
QUEUE_LIMITS = (64.0, 16.0)
BATCH_CAPS = (32.0, 8.0)


def _scaled(setting: str, finding: Finding, ctx: SkillContext, factors: tuple[float, ...]) -> Iterator[Wish]:
    value = Replica(ctx.snapshot, finding.target).setting(setting)
    if value is None and finding.target == FLEET:
        told = [held for held in ctx.snapshot.settings.get(setting, {}).values() if isinstance(held, (int, float))]
        value = median(told) if told else None
    if isinstance(value, (int, float)) and value < UNLIMITED:
        for factor in factors:
            yield setting, finding.target, value * factor


def _as_peers(setting: str, finding: Finding, ctx: SkillContext) -> Iterator[Wish]:
    """What the others have, or a stack nobody has tuned: for a setting that was changed on one replica."""
    told = ctx.snapshot.settings.get(setting, {})
    others = [told[peer.name] for peer in peers_of(Replica(ctx.snapshot, finding.target)) if peer.name in told]
    mine = told.get(finding.target)
    if others and mine is not None and len(set(others)) == 1 and others[0] != mine:
        yield setting, finding.target, others[0]


def _admission(_finding: Finding, _ctx: SkillContext) -> Iterator[Wish]:
    """Guards against more load than can be served in time."""
    for ratio in SHED_RATIOS:
        yield "deadline_shedding_ratio", FLEET, ratio
    for limit in QUEUE_LIMITS:
        yield "queue_limit_requests", FLEET, limit
    yield "priority_policy", FLEET, "class_short_first"
    yield "priority_policy", FLEET, "short_first"
    for cap in BATCH_CAPS:
        yield "batch_in_flight_cap", FLEET, cap


def _cap_binds(finding: Finding, ctx: SkillContext) -> Iterator[Wish]:
    yield from _as_peers("running_request_cap", finding, ctx)
    yield from _scaled("running_request_cap", finding, ctx, (4.0, 2.0, 1.5))
    yield from _admission(finding, ctx)


def _kv_pressure(finding: Finding, ctx: SkillContext) -> Iterator[Wish]:
    """Give blocks back, let fewer requests run, send less; never a bigger batch."""
    yield "usable_kv_blocks_ratio", finding.target, 1.0
    yield from _scaled("running_request_cap", finding, ctx, (0.75, 0.5))
    running = Replica(ctx.snapshot, finding.target).value(Signal.RUNNING)
    if running is not None and running >= 2 and finding.target != FLEET:
        yield "running_request_cap", finding.target, max(1.0, 0.75 * running)
        yield "replica_concurrency_cap", finding.target, max(1.0, running)
    if finding.target != FLEET:
        yield from _scaled("routing_weight", finding, ctx, (0.75,))
    yield from _admission(finding, ctx)
    yield "routing_policy", FLEET, "least_outstanding_tokens"
    yield "execution_profile", finding.target, "fp8_kv"


def _slow(finding: Finding, ctx: SkillContext) -> Iterator[Wish]:
    """A weight in proportion to the measured speed, then ways around the replica."""
    ratio = finding.evidence.get("token_time_ratio")
    others = [
        weight
        for peer in peers_of(Replica(ctx.snapshot, finding.target))
        if isinstance(weight := peer.setting("routing_weight"), (int, float))
    ]
    if isinstance(ratio, (int, float)) and ratio > 0 and others:
        for share in (1.0, 0.75, 0.5):
            yield "routing_weight", finding.target, median(others) / ratio * share
        yield from _scaled("routing_weight", finding, ctx, (0.75,))
        if ratio >= 3.0:
            yield "replica_state", finding.target, "drain"
    yield "routing_policy", FLEET, "least_outstanding_tokens"
    yield "routing_policy", FLEET, "least_connections"
    yield from _as_peers("execution_profile", finding, ctx)


def _hot(finding: Finding, ctx: SkillContext) -> Iterator[Wish]:
    """Less for it, or a policy that sees how full it is; never more, even where its peers have a higher weight."""
    weight = Replica(ctx.snapshot, finding.target).setting("routing_weight")
    for wish in _as_peers("routing_weight", finding, ctx):
        if isinstance(weight, (int, float)) and isinstance(wish[2], (int, float)) and wish[2] < weight:
            yield wish
    yield from _scaled("routing_weight", finding, ctx, (0.75, 0.5))
    for policy in ("least_outstanding_tokens", "least_connections", "prefix_aware"):
        yield "routing_policy", FLEET, policy
    fair = finding.evidence.get("fair_share_requests")
    if isinstance(fair, (int, float)) and fair >= 1:
        yield "replica_concurrency_cap", finding.target, 1.5 * fair


def _behind(finding: Finding, ctx: SkillContext) -> Iterator[Wish]:
    yield from _scaled("routing_weight", finding, ctx, (0.75, 0.5))
    for policy in ("least_outstanding_tokens", "least_connections"):
        yield "routing_policy", FLEET, policy


def _gone(finding: Finding, ctx: SkillContext) -> Iterator[Wish]:
    yield "replica_state", finding.target, "drain"
    yield from _scaled("routing_weight", finding, ctx, (0.5, 0.0))


def _uneven(finding: Finding, _ctx: SkillContext) -> Iterator[Wish]:
    usual = finding.evidence.get("usual_weight")
    if isinstance(usual, (int, float)):
        yield "routing_weight", finding.target, float(usual)


def _starved(finding: Finding, ctx: SkillContext) -> Iterator[Wish]:
    """Smaller steps first, then a bound on one prompt's part of them."""
    yield from _as_peers("tokens_per_step", finding, ctx)
    for tokens in TOKENS_TO_TRY:
        yield "tokens_per_step", finding.target, tokens
    for tokens in (512.0, 1024.0):
        yield "long_prefill_threshold_tokens", finding.target, tokens
    yield from _scaled("running_request_cap", finding, ctx, (0.75, 0.5))
    yield from _admission(finding, ctx)


def _backlog(finding: Finding, ctx: SkillContext) -> Iterator[Wish]:
    """Prompts queue for compute: order and admit them better, bigger steps where they are small."""
    yield from _as_peers("tokens_per_step", finding, ctx)
    yield from _scaled("tokens_per_step", finding, ctx, (2.0, 1.5))
    yield "long_prefill_threshold_tokens", finding.target, 1024.0
    yield "routing_policy", FLEET, "prefix_aware"
    yield "routing_policy", FLEET, "least_outstanding_tokens"
    yield from _admission(finding, ctx)


def _gateway_cap(finding: Finding, ctx: SkillContext) -> Iterator[Wish]:
    for replica in sorted(ctx.snapshot.replicas):
        cap = Replica(ctx.snapshot, replica).setting("replica_concurrency_cap")
        if isinstance(cap, (int, float)) and cap < UNLIMITED:
            yield "replica_concurrency_cap", replica, 1.5 * cap
    yield from _scaled("batch_in_flight_cap", finding, ctx, (2.0,))


def _prefixes(_finding: Finding, _ctx: SkillContext) -> Iterator[Wish]:
    yield "routing_policy", FLEET, "prefix_aware"
    yield "routing_policy", FLEET, "session_hash"


def _no_speculation(finding: Finding, _ctx: SkillContext) -> Iterator[Wish]:
    yield "execution_profile", finding.target, "no_speculation"


def _default_profile(finding: Finding, _ctx: SkillContext) -> Iterator[Wish]:
    yield "execution_profile", finding.target, setting_named("execution_profile").default


def _restart(finding: Finding, ctx: SkillContext) -> Iterator[Wish]:
    replica = Replica(ctx.snapshot, finding.target)
    generation = replica.setting("worker_generation")
    if finding.target != FLEET and isinstance(generation, (int, float)) and restart_obstacle(replica) is None:
        yield "worker_generation", finding.target, generation + 1.0


REMEDIES: Mapping[str, Remedy] = MappingProxyType(
    {
        "running_cap_binds": _cap_binds,
        "prefill_starves_decode": _starved,
        "prefill_backlog": _backlog,
        "kv_pressure": _kv_pressure,
        "kv_blocks_held_back": _kv_pressure,
        "prefix_hits_dropped": _prefixes,
        "prefix_scatter": _prefixes,
        "slow_replica": _slow,
        "hot_replica": _hot,
        "lost_replica": _gone,
        "failing_replica": _gone,
        "uneven_weights": _uneven,
        "replica_behind": _behind,
        "gateway_cap_binds": _gateway_cap,
        "overload": _admission,
        "speculation_rejected": _no_speculation,
        "slow_execution_profile": _default_profile,
        "memory_fragmented": _restart,
        "device_memory_low": _restart,
    }
)
"""By cause of a finding. A cause without an entry has no remedy among our settings."""
