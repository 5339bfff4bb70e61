"""How evenly requests lie on the replicas, measured against what chance alone would do."""

import math
from collections.abc import Sequence
from statistics import median

from harness.diagnosis import Finding
from skills.pressure import pressure_of
from skills.promise import first_token, token_time, unit, worst_severity
from skills.queue import draining
from skills.replica import Replica, out_of_service
from skills.skill import SkillContext
from stack.layer import Layer
from stack.snapshot import Signal

CHANCE_SIGMAS = 4.0
"""Requests that fall on replicas at random spread by the square root of their number; four of these is no chance."""
HOT_RATIO = 1.8
"""Of its fair share: below that a balanced policy on mixed lengths is as uneven from moment to moment."""
UNEVEN_WEIGHT_RATIO = 1.5


def balance_findings(alive: Sequence[Replica], ctx: SkillContext, explained: set[str]) -> list[Finding]:
    """Hot replicas and weights that nothing justifies; replicas in `explained` already have a better explanation."""
    serving = [replica for replica in alive if not out_of_service(replica)]
    models = {_model(replica) for replica in serving}
    found: list[Finding] = []
    for model in sorted(models):
        pool = [replica for replica in serving if _model(replica) == model]
        if len(pool) > 1:
            found += [f for r in pool if r.name not in explained and (f := _hot(r, pool, ctx)) is not None]
            uneven = None if explained else _uneven(pool, ctx)
            found += [] if uneven is None else [uneven]
    return found


def _hot(replica: Replica, pool: list[Replica], ctx: SkillContext) -> Finding | None:
    mine, total = _inside(replica), sum(_inside(other) for other in pool)
    share = total * _weight(replica) / sum(_weight(other) for other in pool)
    if mine < HOT_RATIO * share or mine - share < CHANCE_SIGMAS * math.sqrt(share + 1.0):
        return None
    if pressure_of(replica).now and not _does_more(replica, pool):
        return None
    others = [other for other in pool if other is not replica]
    waiting = replica.amount(Signal.WAITING)
    missed = worst_severity(first_token(replica, ctx.slo), token_time(replica, ctx.slo))
    queued = waiting >= 2 and not draining(replica.fact(Signal.WAITING))
    idle = min(_inside(other) for other in others)
    return Finding(
        layer=Layer.ROUTING,
        cause="hot_replica",
        claim=(
            f"{replica.name} holds {mine:g} of the pool's {total:g} requests, its fair share is {share:.0f}; "
            f"the idlest of its {len(others)} peers holds {idle:g}."
        ),
        severity=max(missed, (0.5 if queued else 0.4) + 0.2 * unit((mine / max(share, 1.0) - HOT_RATIO) / HOT_RATIO)),
        confidence=0.8,
        tunable=True,
        target=replica.name,
        evidence={
            "requests_inside": mine,
            "fair_share_requests": share,
            "idlest_peer_requests": idle,
            "running_requests": replica.value(Signal.RUNNING),
            "running_start_requests": None if (fact := replica.fact(Signal.RUNNING)) is None else fact.start,
            "waiting_requests": waiting,
            "routing_weight": _weight(replica),
        },
    )


def _uneven(pool: list[Replica], ctx: SkillContext) -> Finding | None:
    """A replica's weight is far below its peers' although it is as quick as they are."""
    weights = {replica.name: _weight(replica) for replica in pool}
    low, high = min(pool, key=_weight), max(weights.values())
    if weights[low.name] * UNEVEN_WEIGHT_RATIO > high:
        return None
    times = [time for other in pool if other is not low and (time := other.value(Signal.ITL_MEAN_S)) is not None]
    own = low.value(Signal.ITL_MEAN_S)
    if own is None or not times or own > 1.1 * median(times):
        return None
    others = [other for other in pool if other is not low]
    missed = max(worst_severity(first_token(other, ctx.slo), token_time(other, ctx.slo)) for other in others)
    return Finding(
        layer=Layer.ROUTING,
        cause="uneven_weights",
        claim=(
            f"{low.name} has weight {weights[low.name]:g} where others have {high:g}, yet it makes tokens as fast: "
            "the others carry its share."
        ),
        severity=max(0.35, missed) if missed >= 0.4 else 0.2,
        confidence=0.7,
        tunable=True,
        target=low.name,
        evidence={
            "routing_weight": weights[low.name],
            "highest_weight": high,
            "itl_mean_s": own,
            "peers_itl_mean_s": median(times),
        },
    )


def _does_more(replica: Replica, pool: list[Replica]) -> bool:
    """Whether it gets more work per second than its peers, so that KV pressure is a consequence of the load."""
    others = [other for other in pool if other is not replica]
    signals = (Signal.ARRIVED, Signal.PROMPT_TOKENS, Signal.GENERATION_TOKENS)
    return any(
        replica.amount(signal) > 1.3 * median([other.amount(signal) for other in others]) > 0 for signal in signals
    )


def _inside(replica: Replica) -> float:
    return replica.amount(Signal.RUNNING) + replica.amount(Signal.WAITING)


def _weight(replica: Replica) -> float:
    weight = replica.setting("routing_weight")
    if isinstance(weight, (int, float)):
        return float(weight)
    seen = replica.value(Signal.ROUTING_WEIGHT)
    return 1.0 if seen is None else seen


def _model(replica: Replica) -> str:
    return str(replica.snapshot.configuration.get(replica.name, {}).get("model_name", ""))
