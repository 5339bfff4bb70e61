"""How evenly requests lie on the replicas, measured against what chance alone would do."""

import math
from collections.abc import Sequence
from statistics import median

from harness.diagnosis import HEALTHY_BELOW, Finding
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
SAME_SPEED_RATIO = 1.1
MANY_SCRAPES = 3
SENT_MORE_RATIO = 1.2
"""Of its fair share of arrivals; counts of a whole window scatter far less than queues of a moment."""
PILED_UP_SEVERITY = 0.8
"""Where a replica got no more work than its peers, long requests met there: it may pass by itself."""
AT_LIMIT = 0.4
"""Severity of a latency that is just at its limit."""


def balance_findings(alive: Sequence[Replica], ctx: SkillContext, explained: set[str]) -> list[Finding]:
    """Hot replicas and weights that nothing justifies; replicas in `explained` already have a better explanation."""
    serving = [replica for replica in alive if not out_of_service(replica)]
    models = {_model(replica) for replica in serving}
    found: list[Finding] = []
    for model in sorted(models):
        pool = [replica for replica in serving if _model(replica) == model]
        if len(pool) > 1:
            uneven = None if explained else _uneven(pool, ctx)
            found += [] if uneven is None else [uneven]
            if uneven is None or uneven.severity < HEALTHY_BELOW:
                found += [f for r in pool if r.name not in explained and (f := _hot(r, pool, ctx)) is not None]
    return found


def _hot(replica: Replica, pool: list[Replica], ctx: SkillContext) -> Finding | None:
    mine, total = _inside(replica), sum(_inside(other) for other in pool)
    part = _weight(replica) / sum(_weight(other) for other in pool)
    share = total * part
    if mine < HOT_RATIO * share or mine - share < CHANCE_SIGMAS * math.sqrt(share + 1.0):
        return None
    sent_more = _is_sent_more(replica, pool, part)
    if (_was_even(replica, pool, part) and not sent_more) or (
        pressure_of(replica).now and not _does_more(replica, pool)
    ):
        return None
    others = [other for other in pool if other is not replica]
    waiting = replica.amount(Signal.WAITING)
    missed = worst_severity(first_token(replica, ctx.slo), token_time(replica, ctx.slo))
    queued = waiting >= 2 and not draining(replica.fact(Signal.WAITING))
    more = sent_more or _does_more(replica, pool)
    idle = min(_inside(other) for other in others)
    return Finding(
        layer=Layer.ROUTING,
        cause="hot_replica",
        claim=(
            f"{replica.name} holds {mine:g} of the pool's {total:g} requests, its fair share is {share:.0f}; "
            f"the idlest of its {len(others)} peers holds {idle:g}."
        ),
        severity=max(
            missed if more else min(missed, PILED_UP_SEVERITY),
            (0.5 if queued else 0.4) + 0.2 * unit((mine / max(share, 1.0) - HOT_RATIO) / HOT_RATIO),
        ),
        confidence=0.8 if more else 0.6,
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
    """A replica's weight is far from its peers' although it is neither slower nor quicker than they are."""
    odd = max(pool, key=lambda replica: _apart(_weight(replica), _usual_weight(replica, pool)))
    weight, usual = _weight(odd), _usual_weight(odd, pool)
    if _apart(weight, usual) < UNEVEN_WEIGHT_RATIO or _speed_explains(odd, pool, weight > usual):
        return None
    missed = max(worst_severity(first_token(replica, ctx.slo), token_time(replica, ctx.slo)) for replica in pool)
    crowded = weight > usual and _inside(odd) >= HOT_RATIO * sum(_inside(other) for other in pool) / len(pool)
    return Finding(
        layer=Layer.ROUTING,
        cause="uneven_weights",
        claim=(
            f"{odd.name} has weight {weight:g} where its peers have {usual:g}, which its speed does not explain: "
            f"{odd.name if weight > usual else 'the others'} must carry more than a fair share."
        ),
        severity=max(0.35 if missed >= AT_LIMIT else 0.2, missed, 0.5 if crowded else 0.0),
        confidence=0.8,
        tunable=True,
        target=odd.name,
        evidence={
            "routing_weight": weight,
            "usual_weight": usual,
            "requests_inside": _inside(odd),
            "itl_mean_s": odd.value(Signal.ITL_MEAN_S),
        },
    )


def _usual_weight(replica: Replica, pool: list[Replica]) -> float:
    return median([_weight(other) for other in pool if other is not replica])


def _apart(weight: float, usual: float) -> float:
    return max(weight, usual) / max(1.0, min(weight, usual))


def _speed_explains(odd: Replica, pool: list[Replica], heavy: bool) -> bool:
    """Whether tokens come slower on a light replica, or quicker on a heavy one; unknown speed explains nothing."""
    times = [time for other in pool if other is not odd and (time := other.value(Signal.ITL_MEAN_S)) is not None]
    own = odd.value(Signal.ITL_MEAN_S)
    if own is None or not times:
        return False
    return own < median(times) / SAME_SPEED_RATIO if heavy else own > SAME_SPEED_RATIO * median(times)


def _was_even(replica: Replica, pool: list[Replica], part: float) -> bool:
    """Whether the pool was even at the window's start, so that this may be one burst; two scrapes cannot tell."""
    if replica.snapshot.scrapes < MANY_SCRAPES:
        return False
    starts = {other.name: _inside_at_start(other) for other in pool}
    return starts[replica.name] < HOT_RATIO * part * sum(starts.values())


def _is_sent_more(replica: Replica, pool: list[Replica], part: float) -> bool:
    """Whether more requests arrived at it over the window than its weight and chance allow."""
    mine, total = replica.amount(Signal.ARRIVED), sum(other.amount(Signal.ARRIVED) for other in pool)
    fair = total * part
    return mine >= SENT_MORE_RATIO * fair and mine - fair >= CHANCE_SIGMAS * math.sqrt(fair + 1.0)


def _inside_at_start(replica: Replica) -> float:
    facts = (replica.fact(Signal.RUNNING), replica.fact(Signal.WAITING))
    return sum(fact.start for fact in facts if fact is not None and fact.start is not None)


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
