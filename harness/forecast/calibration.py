"""How slow each replica is against the step-time tables, from metrics alone."""

import statistics

import numpy as np

from stack.simulator.engine.layout import Floats, Tables
from stack.simulator.fleet import FleetSpec
from stack.snapshot import Fact, Signal, Snapshot

SCALE_BOUNDS = (0.2, 8.0)
"""Replicas believed faster or slower than this are outside the simulator's range."""
MODEL_ERROR = 1.5
"""Largest ratio of measured to tabulated token time of a median replica that bursts alone were seen to make."""


def step_scales(fleet: FleetSpec, snapshot: Snapshot) -> tuple[float, ...]:
    """Measured over tabulated token time of each replica; 1 where nothing was measured.

    A running sequence gets one token per engine step, so the mean time between tokens is the mean step. The table's
    answer for the measured batch, context and prefill rate is what that step should have taken. Tokens made during
    bursts count more often than steps do, which makes all replicas look slower alike: what the median replica is
    slower by, up to MODEL_ERROR, is taken for that error and not for hardware.
    """
    scales = [_scale(fleet, snapshot, name) for name in sorted(snapshot.replicas)]
    common = statistics.median(scales)
    if 1 / MODEL_ERROR <= common <= MODEL_ERROR:
        scales = [scale / common for scale in scales]
    return tuple(scales)


def _scale(fleet: FleetSpec, snapshot: Snapshot, name: str) -> float:
    measured_s, running = snapshot.value(Signal.ITL_MEAN_S, name), snapshot.fact(Signal.RUNNING, name)
    prompt, output = (snapshot.value(s) for s in (Signal.PROMPT_TOKENS_MEAN, Signal.OUTPUT_TOKENS_MEAN))
    if not measured_s or running is None or prompt is None or output is None:
        return 1.0
    computed = snapshot.per_s(Signal.PROMPT_TOKENS, name) or 0.0
    computed *= 1.0 - (snapshot.value(Signal.PREFIX_HIT_RATIO, name) or 0.0)
    step_ms = _step_ms(fleet, _mean(running), prompt + output / 2, prompt, computed * measured_s)
    low, high = SCALE_BOUNDS
    return float(min(high, max(low, 1e3 * measured_s / step_ms)))


def _mean(running: Fact) -> float:
    """Mean batch over the window from both ends; at least the sequence that was measured."""
    start = running.value if running.start is None else running.start
    return max(1.0, (start + running.value) / 2)


def _step_ms(fleet: FleetSpec, batch: float, context: float, prompt: float, prefilled: float) -> float:
    """Mean step: a decode step of the batch, plus the share of prefill that falls on it.

    Args:
        prefilled: prompt tokens computed per step on average; their cost is taken per token of a whole prompt.
    """
    host = fleet.overhead
    tables = fleet.step_times
    decode = _line(tables.batches, tables.generation_ms, batch)
    attention = _plane(tables.batches, tables.contexts, tables.decode_attention_ms, batch, context)
    return decode + attention + host.step_ms + host.sequence_ms * batch + prefilled * _per_token(tables, batch, prompt)


def _per_token(tables: Tables, batch: float, prompt: float) -> float:
    tokens = max(1.0, prompt)
    linear = _line(tables.tokens, tables.context_ms, batch + tokens) - _line(tables.tokens, tables.context_ms, batch)
    return (linear + _plane(tables.chunks, tables.cached, tables.prefill_attention_ms, tokens, 0.0)) / tokens


def _line(grid: Floats, values: Floats, at: float) -> float:
    return float(np.interp(at, grid, values))


def _plane(rows: Floats, columns: Floats, values: Floats, row: float, column: float) -> float:
    along = [np.interp(column, columns, line) for line in values]
    return float(np.interp(row, rows, along))
