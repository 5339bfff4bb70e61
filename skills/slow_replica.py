"""A replica whose tokens come slower than its peers' although it does no more work than they do."""

import math
from dataclasses import dataclass
from statistics import median

from harness.diagnosis import Finding
from skills.pressure import pool_is_smaller, pressure_of
from skills.promise import first_token, token_time, unit, worst_severity
from skills.replica import Replica, out_of_service, peers_of
from skills.skill import SkillContext
from stack.layer import Layer
from stack.snapshot import Fact, Signal

SLOW_RATIO = 1.4
"""Of the peers' median. Step time grows slowly with the batch, so ordinary differences of load stay well below."""
EARLY_RATIO = 1.25
"""The same over each half of the window alone, so that one burst is not taken for a slow machine."""
ABOVE_SPREAD = 1.25
"""How far beyond the peers' own differences it must stand."""
MORE_WORK_RATIO = 1.2
"""More work per second than this times the peers' explains slower tokens by load."""
PREFILL_RATIO = 1.2
"""A slow machine prefills slowly too; one that merely met long prompts only has slow tokens."""
INFERRED_SEVERITY = 0.85
"""A comparison is an inference: it is never so severe that a second look would be skipped."""
STEP_SETTINGS = ("tokens_per_step", "long_prefill_threshold_tokens", "execution_profile")
ENOUGH_TOKENS = 500.0
ENOUGH_REQUESTS = 10.0
"""A mean over fewer answers is that of a few prompts that happened to be prefilled beside them."""


@dataclass(frozen=True)
class Comparison:
    """A replica's token time against its peers'.

    Attributes:
        ratio: own token time over the peers' median.
        early_ratio, late_ratio: the same over each half of the window; None when unknown.
        spread: the peers' median over their quickest.
    """

    own_s: float
    peers_s: float
    ratio: float
    early_ratio: float | None
    late_ratio: float | None
    spread: float


def slow_finding(replica: Replica, ctx: SkillContext) -> Finding | None:
    """The claim that `replica` is slow, or None."""
    peers = tuple(peer for peer in peers_of(replica) if _enough(peer) and _set_alike(peer, replica))
    if out_of_service(replica) or not _enough(replica) or not peers:
        return None
    compared = _compare(replica, peers)
    if compared is None or not _outstanding(compared) or _explained(replica, peers):
        return None
    if prefill_ratio(replica, peers) < PREFILL_RATIO:
        return None
    compensated = _compensated(replica, peers, compared.ratio)
    promised = (first_token(replica, ctx.slo), token_time(replica, ctx.slo))
    grade = 0.5 + 0.3 * unit((compared.ratio - SLOW_RATIO) / (3.0 - SLOW_RATIO))
    missed = worst_severity(*promised)
    severity = 0.25 if compensated and missed < 0.4 else max(grade, min(missed, INFERRED_SEVERITY))
    return Finding(
        layer=Layer.ROUTING,
        cause="slow_replica",
        claim=(
            f"{replica.name} makes a token every {compared.own_s * 1000:.1f} ms, {compared.ratio:.1f} times its peers' "
            f"{compared.peers_s * 1000:.1f} ms, and does no more work than they do"
            + ("; its weight already allows for that." if compensated else ": its share of traffic is too big for it.")
        ),
        severity=severity,
        confidence=_confidence(len(peers), compared),
        tunable=True,
        target=replica.name,
        evidence=_evidence(replica, peers, compared),
        advice="Have its machine looked at (GPU clocks, temperature, neighbours): weights only go around it.",
    )


def _enough(replica: Replica) -> bool:
    answered, finished = replica.amount(Signal.GENERATION_TOKENS), replica.amount(Signal.FINISHED)
    return replica.value(Signal.ITL_MEAN_S) is not None and answered >= ENOUGH_TOKENS and finished >= ENOUGH_REQUESTS


def _set_alike(one: Replica, other: Replica) -> bool:
    """Whether both make steps of the same kind; smaller steps are quicker on any machine."""
    return all(one.setting(name) == other.setting(name) for name in STEP_SETTINGS)


def _compare(replica: Replica, peers: tuple[Replica, ...]) -> Comparison | None:
    own, others = replica.amount(Signal.ITL_MEAN_S), [peer.amount(Signal.ITL_MEAN_S) for peer in peers]
    typical = median(others)
    if min(others) <= 0:
        return None
    mine = replica.fact(Signal.ITL_MEAN_S)
    halves = [_halves(fact) for peer in peers if (fact := peer.fact(Signal.ITL_MEAN_S)) is not None and fact.start]
    early = late = None
    if mine is not None and mine.start and halves:
        early = mine.start / median([half[0] for half in halves])
        late = _halves(mine)[1] / max(1e-9, median([half[1] for half in halves]))
    return Comparison(own, typical, own / typical, early, late, typical / min(others))


def _halves(mean: Fact) -> tuple[float, float]:
    """A mean's first and second half, of equal weight."""
    start = mean.value if mean.start is None else mean.start
    return start, max(0.0, 2 * mean.value - start)


def prefill_ratio(replica: Replica, peers: tuple[Replica, ...]) -> float:
    """Prefill seconds per prompt token over the peers' median; infinite when unknown, so that it excludes nothing."""
    own, others = _prefill_pace(replica), [pace for peer in peers if (pace := _prefill_pace(peer)) is not None]
    return math.inf if own is None or not others else own / median(others)


def _prefill_pace(replica: Replica) -> float | None:
    seconds, tokens = replica.value(Signal.PREFILL_MEAN_S), replica.value(Signal.PROMPT_TOKENS_MEAN)
    return seconds / tokens if seconds and tokens else None


def _outstanding(compared: Comparison) -> bool:
    halves = [ratio for ratio in (compared.early_ratio, compared.late_ratio) if ratio is not None]
    return all(ratio >= EARLY_RATIO for ratio in halves) and compared.ratio >= max(
        SLOW_RATIO, ABOVE_SPREAD * compared.spread
    )


def _explained(replica: Replica, peers: tuple[Replica, ...]) -> bool:
    """More work per second than its peers, or pressure on a smaller KV pool, slows tokens without the machine's fault.

    Pressure on a pool as big as its peers', without more work, is itself a consequence: answers stay longer.
    """
    for signal in (Signal.GENERATION_TOKENS, Signal.PROMPT_TOKENS):
        others = [peer.amount(signal) for peer in peers]
        if replica.amount(signal) > MORE_WORK_RATIO * median(others):
            return True
    return pressure_of(replica).now and pool_is_smaller(replica, peers)


def _compensated(replica: Replica, peers: tuple[Replica, ...], ratio: float) -> bool:
    """Whether its weight is already as small as its speed asks for, within a seventh."""
    own, others = _weight(replica), [weight for peer in peers if (weight := _weight(peer)) is not None]
    return own is not None and bool(others) and own <= 1.15 * median(others) / ratio


def _weight(replica: Replica) -> float | None:
    weight = replica.setting("routing_weight")
    return float(weight) if isinstance(weight, (int, float)) else replica.value(Signal.ROUTING_WEIGHT)


def _confidence(peers: int, compared: Comparison) -> float:
    both_halves = 0.1 if compared.early_ratio is not None else 0.0
    return 0.6 + both_halves + 0.1 * min(2, peers - 1) + 0.1 * unit(compared.ratio / SLOW_RATIO - 1.0)


def _evidence(replica: Replica, peers: tuple[Replica, ...], compared: Comparison) -> dict[str, float | str | None]:
    return {
        "itl_mean_s": compared.own_s,
        "peers_itl_mean_s": compared.peers_s,
        "token_time_ratio": compared.ratio,
        "token_time_early_ratio": compared.early_ratio,
        "prefill_time_ratio": prefill_ratio(replica, peers) if _prefill_pace(replica) else None,
        "running_requests": replica.value(Signal.RUNNING),
        "peers_running_requests": median([peer.amount(Signal.RUNNING) for peer in peers]),
        "generation_tokens": replica.value(Signal.GENERATION_TOKENS),
        "peers_generation_tokens": median([peer.amount(Signal.GENERATION_TOKENS) for peer in peers]),
        "routing_weight": _weight(replica),
    }
