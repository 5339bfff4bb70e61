"""How slow each replica is against the step-time tables, from metrics alone."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from harness.forecast.belief import Belief, present_of, restricted, sorted_names
from harness.forecast.load import FADING
from harness.forecast.staging import staged
from stack.simulator.engine.layout import Floats, Tables
from stack.simulator.fleet import FleetSpec
from stack.simulator.simulation import EPOCH_S
from stack.snapshot import Signal, Snapshot
from stack.window import snapshot_of

SCALE_BOUNDS = (0.2, 8.0)
"""Replicas believed faster or slower than this are outside the simulator's range."""
HINDCAST_S = 60.0
HINDCAST_REPLICAS = 4
ROUNDS = 2
SEED = 7


@dataclass(frozen=True)
class Calibration:
    """What the metrics say of step times.

    Attributes:
        step_scale: per replica, in the order of their names.
        measured: which of them had token times to measure; the others take the median.
    """

    step_scale: tuple[float, ...]
    measured: tuple[bool, ...]


def calibrated(belief: Belief, snapshot: Snapshot, earlier: Sequence[Snapshot] = ()) -> Calibration:
    """Step times that make the simulated last window show the token times that were measured in it.

    The table's answer for the measured batch, context and prefill rate is what the mean step should have taken. It is
    not quite what a mean over tokens shows, as bursts hold more tokens than steps: by how much is seen from a
    simulation of the same window, read in the same way.

    One factor stands for kernels, prefill and host time together. Prefill times were tried as a second one: they also
    hold waiting between chunks and preemptions, and gave errors of 19 % where none at all has 6 %.

    Args:
        earlier: windows before it under the same settings that count too, the less the older they are.
    """
    raw = _over_time([raw_scales(belief.fleet, one) for one in (*earlier, snapshot)])
    known = [scale for scale in raw if scale is not None]
    if not known:
        return Calibration((1.0,) * len(raw), (False,) * len(raw))
    usual, bias = statistics.median(known), 1.0
    for _ in range(ROUNDS):
        belief = replace(belief, step_scale=_corrected(raw, usual, bias))
        seen, part = hindcast(belief, snapshot)
        bias = _bias(part, seen)
    return Calibration(_corrected(raw, usual, bias), tuple(scale is not None for scale in raw))


def _over_time(windows: Sequence[Sequence[float | None]]) -> tuple[float | None, ...]:
    """Weighted geometric mean of each replica's scales, oldest window first."""
    if len(windows) == 1:
        return tuple(windows[0])
    weights = [FADING**age for age in range(len(windows))][::-1]
    found: list[float | None] = []
    for scales in zip(*windows, strict=True):
        known = [(weight, np.log(scale)) for weight, scale in zip(weights, scales, strict=True) if scale]
        total = sum(weight for weight, _ in known)
        found.append(float(np.exp(sum(weight * log for weight, log in known) / total)) if known else None)
    return tuple(found)


def _corrected(raw: Sequence[float | None], usual: float, bias: float) -> tuple[float, ...]:
    low, high = SCALE_BOUNDS
    return tuple(min(high, max(low, (usual if scale is None else scale) / bias)) for scale in raw)


def hindcast(belief: Belief, snapshot: Snapshot) -> tuple[Snapshot, Belief]:
    """The snapshot's own window as simulated from its start, and the belief about those replicas it was tried on."""
    rate = snapshot.per_s(Signal.ARRIVED) or belief.load.arrivals_per_s
    load = replace(belief.load, arrivals_per_s=rate)
    at_start = replace(belief, load=load, present=present_of(snapshot, at_start=True))
    if len(belief.names) > HINDCAST_REPLICAS:
        at_start = restricted(at_start, spread_over(belief, HINDCAST_REPLICAS))
    stage = staged(at_start, HINDCAST_S, SEED)
    simulation = stage.simulation
    readings = simulation.readings()
    simulation.advance(stage.begin_s + HINDCAST_S)
    readings += simulation.readings()
    return snapshot_of(readings, window_s=None, now_s=EPOCH_S + simulation.now_s), at_start


def spread_over(belief: Belief, count: int) -> tuple[int, ...]:
    """`count` serving replicas that stand for all: evenly spread from the least to the most busy."""
    order = sorted(
        (index for index, serving in enumerate(belief.present.serving) if serving),
        key=lambda index: (belief.present.running[index] + belief.present.waiting[index], index),
    )
    order = order or list(range(len(belief.names)))
    places = np.unique(np.linspace(0, len(order) - 1, count).round().astype(int))
    return tuple(sorted(order[place] for place in places))


def raw_scales(fleet: FleetSpec, snapshot: Snapshot) -> tuple[float | None, ...]:
    """Measured over tabulated mean step of each replica; None where nothing was measured."""
    return tuple(_raw(fleet, snapshot, name) for name in sorted_names(snapshot))


def _raw(fleet: FleetSpec, snapshot: Snapshot, name: str) -> float | None:
    token_s, tokens = snapshot.value(Signal.ITL_MEAN_S, name), snapshot.per_s(Signal.GENERATION_TOKENS, name)
    prompt, output = (snapshot.value(s) for s in (Signal.PROMPT_TOKENS_MEAN, Signal.OUTPUT_TOKENS_MEAN))
    if not token_s or not tokens or prompt is None or output is None:
        return None
    # Little's law: tokens per second times the time each took is how many requests decoded on average.
    batch = max(1.0, tokens * token_s)
    computed = snapshot.per_s(Signal.PROMPT_TOKENS, name) or 0.0
    computed *= 1.0 - (snapshot.value(Signal.PREFIX_HIT_RATIO, name) or 0.0)
    return 1e3 * token_s / _step_ms(fleet, batch, prompt + output / 2, prompt, computed * token_s)


def _bias(believed: Belief, seen: Snapshot) -> float:
    """How much slower than it is a simulated replica looks."""
    looks = [
        raw / scale
        for raw, scale in zip(raw_scales(believed.fleet, seen), believed.step_scale, strict=True)
        if raw is not None
    ]
    return statistics.median(looks) if looks else 1.0


def _step_ms(fleet: FleetSpec, batch: float, context: float, prompt: float, prefilled: float) -> float:
    """Mean step: a decode step of the batch, plus the share of prefill that falls on it.

    Args:
        prefilled: prompt tokens computed per step on average; their cost is taken per token of a whole prompt.
    """
    tables, host = fleet.step_times, fleet.overhead
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
