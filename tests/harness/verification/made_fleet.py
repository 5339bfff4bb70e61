"""A made-up fleet: blocks of figures before and after a change, with the noise that real ones have.

Logarithms of latencies are a level, what the load makes of it, a drift that all replicas share, and a noise of each
replica's own; drift and noise are autocorrelated from block to block. Requests arrive at random and finish later.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from stack_noise import StackNoise

from stack.snapshot import Fact, Signal, Snapshot

BEFORE, AFTER = 30, 15
WRITTEN_S, SETTLE_S = 100_000.0, 30.0
TTFT_S, ITL_S = 0.2, 0.012
USUAL_LOAD, LOAD_NOISE, LOAD_PHI = 0.5, 0.06, 0.6
ITL_LOAD_EXPONENT = 0.5
"""Token times rise less with the load than first tokens do."""
OUTPUT_TOKENS, PROMPT_TOKENS, LENGTH_SD = 200.0, 1000.0, 0.8
WARM_UP_TAU_S = 20.0
REPLICAS = ("r0", "r1", "r2", "r3")


@dataclass(frozen=True, kw_only=True)
class Case:
    """What a change does to the replicas it is written to, and what happens to the load meanwhile.

    Attributes:
        ttft, itl: change of first tokens and token times, as a ratio less one.
        served, errors, shed: shares of the requests that finish, fail, or are refused; the rest is lost.
        warm_up: how much slower the changed replicas are right after the write.
        load_step: change of the whole fleet's load at the write.
        share: the changed replica's load as a multiple of its usual one; the others take the rest.
        lost: signals that are not measured any more afterwards.
    """

    ttft: float = 0.0
    itl: float = 0.0
    served: float = 1.0
    errors: float = 0.0
    shed: float = 0.0
    warm_up: float = 0.6
    load_step: float = 0.0
    share: float = 1.0
    lost: frozenset[Signal] = field(default_factory=frozenset)


def slower(harm: float, **more: float) -> Case:
    """Every latency times `1 + harm`."""
    return Case(ttft=harm, itl=harm, **more)


def autocorrelated(rng: np.random.Generator, count: int, phi: float, sd: float) -> np.ndarray:
    steps = rng.normal(0, sd * np.sqrt(1 - phi**2), count)
    values = np.empty(count)
    values[0] = rng.normal(0, sd)
    for i in range(1, count):
        values[i] = phi * values[i - 1] + steps[i]
    return values


def made(case: Case, noise: StackNoise, seed: int, treated: tuple[str, ...]) -> list[Snapshot]:
    """Snapshots that follow one another: BEFORE of them up to the write, and AFTER from its settling on."""
    rng = np.random.default_rng(seed)
    count = BEFORE + AFTER
    after = np.arange(count) >= BEFORE
    load = USUAL_LOAD * np.exp(autocorrelated(rng, count, LOAD_PHI, LOAD_NOISE))
    load = np.clip(load * (1 + case.load_step * after), 0.05, 0.93)
    drift = autocorrelated(rng, count, noise.fleet.phi, noise.fleet.sd)
    rows = {}
    for name in REPLICAS:
        others = (len(REPLICAS) - len(treated) * case.share) / max(1, len(REPLICAS) - len(treated))
        share = np.where(after, case.share if name in treated else others, 1.0)
        rows[name] = _replica(
            case if name in treated else Case(warm_up=0.0), noise, rng, np.clip(load * share, 0.02, 0.93), drift
        )
    return [_snapshot({name: row[i] for name, row in rows.items()}, noise.block_s, i, case) for i in range(count)]


def _replica(
    case: Case, noise: StackNoise, rng: np.random.Generator, load: np.ndarray, drift: np.ndarray
) -> list[dict[Signal, float]]:
    count = len(load)
    after = np.arange(count) >= BEFORE
    busy = -np.log(1 - load)
    since_s = SETTLE_S + noise.block_s * (np.arange(count) - BEFORE)
    left = case.warm_up * np.exp(-np.maximum(since_s, 0) / WARM_UP_TAU_S) * WARM_UP_TAU_S / noise.block_s * after
    own = {name: autocorrelated(rng, count, one.phi, one.sd) for name, one in noise.own.items()}
    ttft_s = TTFT_S * np.exp(busy + drift + own["ttft"] + (np.log1p(case.ttft) + left) * after)
    itl_s = ITL_S * np.exp(ITL_LOAD_EXPONENT * busy + drift + own["itl"] + (np.log1p(case.itl) + left) * after)
    arrived = rng.poisson(noise.requests * load / USUAL_LOAD)
    tokens = OUTPUT_TOKENS * np.exp(rng.normal(0, LENGTH_SD, count) / np.sqrt(np.maximum(arrived, 1)))
    prompts = PROMPT_TOKENS * np.exp(rng.normal(0, LENGTH_SD, count) / np.sqrt(np.maximum(arrived, 1)))
    e2e_s = ttft_s + itl_s * (tokens - 1)
    inside = rng.poisson(noise.requests * load / USUAL_LOAD / noise.block_s * e2e_s)
    ended = np.maximum(0, arrived + np.concatenate([[0], -np.diff(inside)]))
    served, errors, shed = (
        np.where(after, share, usual) for share, usual in ((case.served, 1), (case.errors, 0), (case.shed, 0))
    )
    columns = {
        Signal.ARRIVED: arrived,
        Signal.FINISHED: np.round(ended * served),
        Signal.ERRORS: np.round(ended * errors),
        Signal.SHED: np.round(ended * shed),
        Signal.PROMPT_TOKENS_MEAN: prompts,
        Signal.OUTPUT_TOKENS_MEAN: tokens,
        Signal.TTFT_MEAN_S: ttft_s,
        Signal.TTFT_P50_S: 0.7 * ttft_s,
        Signal.TTFT_P95_S: 2.2 * ttft_s * np.exp(own["ttft_tail"]),
        Signal.TTFT_P99_S: 3.2 * ttft_s * np.exp(own["ttft_tail"]),
        Signal.ITL_MEAN_S: itl_s,
        Signal.ITL_P50_S: 0.9 * itl_s,
        Signal.ITL_P95_S: 1.6 * itl_s * np.exp(own["itl_tail"]),
        Signal.ITL_P99_S: 2.2 * itl_s * np.exp(own["itl_tail"]),
        Signal.E2E_MEAN_S: e2e_s,
        Signal.E2E_P95_S: 3.0 * e2e_s,
    }
    return [{signal: float(values[i]) for signal, values in columns.items()} for i in range(count)]


COUNTED = (Signal.ARRIVED, Signal.FINISHED, Signal.ERRORS, Signal.SHED)
FEWEST = {Signal.TTFT_P50_S: 4, Signal.TTFT_P95_S: 20, Signal.TTFT_P99_S: 100}
"""Requests below which a quantile of first tokens is not told; see stack.measure."""


def _snapshot(rows: Mapping[str, dict[Signal, float]], block_s: float, place: int, case: Case) -> Snapshot:
    start_s = WRITTEN_S + (place - BEFORE) * block_s + (SETTLE_S if place >= BEFORE else 0.0)
    hidden = case.lost if place >= BEFORE else frozenset()
    replicas = {name: _facts(row, hidden) for name, row in rows.items()}
    return Snapshot(start_s + block_s, block_s, 13, replicas, _facts(_fleet(list(rows.values())), hidden))


def _fleet(rows: list[dict[Signal, float]]) -> dict[Signal, float]:
    finished = sum(row[Signal.FINISHED] for row in rows)
    fleet = {signal: sum(row[signal] for row in rows) for signal in COUNTED}
    if finished:
        for signal in rows[0].keys() - fleet.keys():
            fleet[signal] = sum(row[signal] * row[Signal.FINISHED] for row in rows) / finished
    return fleet


def _facts(row: Mapping[Signal, float], hidden: frozenset[Signal]) -> dict[Signal, Fact]:
    """What a reader tells: without a finished request there is no latency, with few no quantile."""
    finished = row[Signal.FINISHED]
    told = {s: v for s, v in row.items() if s not in hidden and finished >= FEWEST.get(s, 0 if s in COUNTED else 1)}
    return {signal: Fact(value, age_s=1.0) for signal, value in told.items()}
