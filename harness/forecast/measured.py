"""Step times of an engine that no table knows: as it was seen to take them, or worked out from its metrics."""

import statistics
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from stack.errors import InputError
from stack.setting import Value
from stack.simulator.hardware.gpu import BLOCK_TOKENS
from stack.simulator.hardware.measured import (
    BASE_MS,
    BATCH_MAX,
    ERROR_RATIO,
    FIT,
    KV_BLOCK_MS,
    LAG,
    OK,
    SEEN,
    SEQUENCE_MS,
    TOKEN_MS,
    MeasuredSteps,
    told,
)
from stack.simulator.hardware.step_fit import SeenSteps, fitted
from stack.snapshot import Signal, Snapshot

Facts = Mapping[str, Value]
WINDOWS_MIN = 6
SPREAD_MIN = 1.5
"""Largest over smallest number of tokens per step among the windows, below which metrics alone tell no step times."""

METRICS_ERROR_RATIO = 0.15
"""Least error of step times from windows' means: these mix steps, and tokens of bursts count more than others."""


def measured_steps(snapshot: Snapshot, earlier: Sequence[Snapshot]) -> MeasuredSteps | str:
    """One engine that stands for all, or why there is none.

    The replicas' own fits are averaged by how many steps are behind them; what one of them is slower by is found by
    the calibration. Without any, the windows' means are fitted in the same way.
    """
    facts = [facts for _, facts in sorted(snapshot.configuration.items()) if told(facts, "num_gpu_blocks")]
    if not facts:
        return "no engine tells its KV blocks"
    fits = [one for one in facts if one.get(FIT) == OK]
    if not fits:
        reason = next((f"step times are {one[FIT]}" for one in facts if FIT in one), "step times were not measured")
        return _from_metrics([*earlier, snapshot], facts[0]) or f"{reason}, and the windows' means do not tell them"
    weights = [told(one, SEEN) or 1.0 for one in fits]

    def mean(key: str) -> float:
        return float(np.average([told(one, key) or 0.0 for one in fits], weights=weights))

    return _made(
        snapshot,
        facts[0],
        coefficients=(mean(BASE_MS), mean(TOKEN_MS), mean(SEQUENCE_MS), mean(KV_BLOCK_MS)),
        batch_max=max(told(one, BATCH_MAX) or 0.0 for one in fits),
        error_ratio=mean(ERROR_RATIO),
        async_lag=mean(LAG) >= 0.5,
    )


def block_tokens(facts: Facts) -> float:
    """Tokens per KV block of an engine."""
    return told(facts, "block_size") or float(BLOCK_TOKENS)


def _made(
    snapshot: Snapshot,
    facts: Facts,
    *,
    coefficients: tuple[float, float, float, float],
    batch_max: float,
    error_ratio: float,
    async_lag: bool,
) -> MeasuredSteps | str:
    base_ms, token_ms, sequence_ms, kv_block_ms = coefficients
    try:
        return MeasuredSteps(
            model=str(facts.get("model_name", "unknown")),
            base_ms=base_ms,
            token_ms=token_ms,
            sequence_ms=sequence_ms,
            kv_token_ms=kv_block_ms / block_tokens(facts),
            kv_tokens=int((told(facts, "num_gpu_blocks") or 0.0) * block_tokens(facts)),
            batch_max=batch_max,
            error_ratio=error_ratio,
            frontend_s=_frontend_s(snapshot),
            async_lag=async_lag,
        )
    except InputError as error:
        return str(error)


def _frontend_s(snapshot: Snapshot) -> float:
    """Time to the first token that is neither queue nor prefill, the median over the engines; 0 where not known."""
    known = []
    for name in snapshot.replicas:
        parts = [snapshot.value(one, name) for one in (Signal.TTFT_MEAN_S, Signal.QUEUE_MEAN_S, Signal.PREFILL_MEAN_S)]
        first, queue, prefill = parts
        if first is not None and queue is not None and prefill is not None:
            known.append(max(0.0, first - queue - prefill))
    return statistics.median(known) if known else 0.0


def _from_metrics(snapshots: Sequence[Snapshot], facts: Facts) -> MeasuredSteps | str:
    """Step times from the means of several windows, where their batches differ enough; empty where not."""
    rows = np.array([row for snapshot in snapshots for row in _means(snapshot)])
    if len(rows) < WINDOWS_MIN or rows[:, 1].max() < SPREAD_MIN * rows[:, 1].min():
        return ""
    steps = SeenSteps(*rows.T)
    fit = fitted(steps)
    return _made(
        snapshots[-1],
        facts,
        coefficients=(fit.base_ms, fit.token_ms, fit.sequence_ms, fit.kv_block_ms),
        batch_max=float(steps.sequences.max()),
        error_ratio=max(METRICS_ERROR_RATIO, fit.miss(steps)),
        async_lag=False,
    )


def _means(snapshot: Snapshot) -> Iterator[tuple[float, float, float, float]]:
    """Per replica of a window: mean step in ms, tokens, running requests and KV blocks in it."""
    for name in snapshot.replicas:
        token_s, per_s = snapshot.value(Signal.ITL_MEAN_S, name), snapshot.per_s(Signal.GENERATION_TOKENS, name)
        tokens = snapshot.value(Signal.STEP_TOKENS_MEAN, name)
        blocks = told(snapshot.configuration.get(name, {}), "num_gpu_blocks")
        if token_s and per_s and tokens and blocks:
            # Little's law, as in the calibration: requests that decode on average.
            held = (snapshot.value(Signal.KV_USAGE_RATIO, name) or 0.0) * blocks
            yield 1e3 * token_s, tokens, max(1.0, per_s * token_s), held
