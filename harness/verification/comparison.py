"""Before and after as series: which blocks belong to which level, and what they are compared with.

Two methods. `controls`: the changed replica against untouched ones over the same minutes (difference in differences of
logarithms). `load_adjusted`: the metric against its own past, with the load as covariate and no extrapolation.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import log
from typing import TypeAlias

import numpy as np

from harness.objective import Slo
from harness.verification.block import Block, Values
from harness.verification.controls import CONTROLS_MIN
from harness.verification.goal import Goal
from harness.verification.metric import Metric, offered, output_tokens_mean
from harness.verification.statistics import Floats, Interval, Series, level_change
from stack.snapshot import Signal

LoadFigure: TypeAlias = Callable[[Block, str], float | None]
"""What a block says of the load of a replica or the fleet."""
ONSET_BLOCKS_MAX = 8
ONSET_BLOCKS_MIN = 2
ONSET_ALPHA = 0.001
BLOCKS_PER_COVARIATE = 5


@dataclass(frozen=True)
class Comparison:
    """Blocks before and after a change, ready to be compared metric by metric.

    Attributes:
        before, after: in time order.
        goal: where the change is looked for.
        breaks_s: times at which the level before may have changed: earlier writes, and the onset of the trouble.
        controls: names of untouched replicas; empty for the load-adjusted method.
        figures: by the end of a block, what is compared instead of the metric itself, already transformed.
    """

    before: tuple[Block, ...]
    after: tuple[Block, ...]
    goal: Goal
    slo: Slo
    breaks_s: tuple[float, ...] = ()
    controls: tuple[str, ...] = ()
    figures: Mapping[float, float | None] | None = None

    @property
    def method(self) -> str:
        """Name of the method."""
        return "controls" if self.controls else "load_adjusted"

    def change(self, metric: Metric, alpha: float, *, adjusted: bool = True) -> Interval | None:
        """The metric's change of level, or None when it was not measured on both sides.

        Args:
            adjusted: for the load; a difference within each block needs none.
        """
        series = self.series(metric, adjusted=adjusted)
        return None if series is None else level_change(series, alpha)

    def series(self, metric: Metric, *, adjusted: bool = True) -> Series | None:
        """The metric over all blocks in which it was measured."""
        blocks = self.before + self.after
        values = [self.figure(metric, block) for block in blocks]
        used = [i for i, value in enumerate(values) if value is not None]
        after_count = sum(i >= len(self.before) for i in used)
        if not after_count or after_count == len(used):
            return None
        levels = np.array([self._level(i) for i in used])
        regime = np.unique(levels, return_inverse=True)[1]
        length_s = blocks[0].length_s
        position = np.array([blocks[i].end_s for i in used]) / length_s
        features = self._features([blocks[i] for i in used], int(regime[-1]) + 1, adjusted and not metric.counted)
        figures = np.array([values[i] for i in used], dtype=float)
        return Series(figures, position, regime, features, robust=metric.scale.robust)

    def level(self, metric: Metric, blocks: Sequence[Block]) -> float | None:
        """The metric's plain mean over blocks, for people: geometric for what is compared as a ratio."""
        raw = [v for b in blocks if (v := metric.of(b.of(self.goal.target), self.slo)) is not None]
        if not raw:
            return None
        if metric.scale.relative:
            return metric.scale.back(sum(metric.scaled(v) for v in raw) / len(raw))
        return sum(raw) / len(raw)

    def known_ratio(self, metric: Metric) -> float:
        """Share of the blocks in which the metric was measured, on the side where it is smaller."""
        sides = (self.before, self.after)
        return min(sum(self.figure(metric, b) is not None for b in side) / max(1, len(side)) for side in sides)

    @property
    def last_regime(self) -> tuple[Block, ...]:
        """The blocks before the change that its effect is measured against."""
        start_s = max((b for b in self.breaks_s if self.before and b <= self.before[-1].start_s), default=-1e300)
        return tuple(block for block in self.before if block.start_s >= start_s)

    def _level(self, index: int) -> int:
        if index >= len(self.before):
            return len(self.breaks_s) + 1
        return sum(b <= self.before[index].start_s for b in self.breaks_s)

    def figure(self, metric: Metric, block: Block) -> float | None:
        """What is compared of a block: the metric, transformed, less the controls' mean where there are any."""
        if self.figures is not None:
            return self.figures[block.end_s]
        treated = self._transformed(metric, block.of(self.goal.target))
        if treated is None or not self.controls:
            return treated
        others = [self._transformed(metric, block.of(name)) for name in self.controls]
        known = [value for value in others if value is not None]
        return treated - sum(known) / len(known) if len(known) >= CONTROLS_MIN else None

    def _transformed(self, metric: Metric, values: Values) -> float | None:
        value = metric.of(values, self.slo)
        return None if value is None else metric.scaled(value)

    def _features(self, blocks: Sequence[Block], levels: int, adjusted: bool) -> Floats:
        """Centred load features; only those known in every block, and no more than the blocks can carry."""
        empty = np.zeros((len(blocks), 0))
        if self.controls or not adjusted:
            return empty
        rows = [load_features(block.of(self.goal.target), block.length_s) for block in blocks]
        most = max(0, (len(blocks) - levels) // BLOCKS_PER_COVARIATE)
        columns: list[Floats] = []
        for column in zip(*rows, strict=True):
            if len(columns) < most and None not in column:
                values = np.array(column, dtype=float)
                if values.std() > 1e-3:
                    columns.append(values - values.mean())
        if columns and len(columns) < most:
            # Waits grow faster than the load: without curvature a busy minute looks like harm.
            curved = columns[0] ** 2
            columns.append(curved - curved.mean())
        return np.column_stack(columns) if columns else empty


def load_features(values: Values, length_s: float) -> tuple[float | None, float | None, float | None]:
    """Logarithms of offered requests per second, prompt tokens and output tokens per request."""
    arrived = offered(values)
    prompt, output = values.get(Signal.PROMPT_TOKENS_MEAN), output_tokens_mean(values)
    rate = None if arrived is None else log(max(arrived, 0.5) / length_s)
    return rate, log(prompt) if prompt else None, log(output) if output else None


def load_of(block: Block, target: str) -> float | None:
    """Offered prompt tokens per second, or requests per second where the prompt length is not known."""
    values = block.of(target)
    arrived = offered(values)
    return None if arrived is None else arrived / block.length_s * values.get(Signal.PROMPT_TOKENS_MEAN, 1.0)


def requests_of(block: Block, target: str) -> float | None:
    """Requests that came in, per second."""
    arrived = offered(block.of(target))
    return None if arrived is None else arrived / block.length_s


def prompt_tokens_of(block: Block, target: str) -> float | None:
    """Mean length of the prompts; None where no request finished."""
    return block.of(target).get(Signal.PROMPT_TOKENS_MEAN)


def comparable(
    before: Sequence[Block],
    after: Sequence[Block],
    target: str,
    margin: float,
    figures: Sequence[LoadFigure] = (requests_of, prompt_tokens_of),
) -> tuple[Block, ...]:
    """The blocks after the change whose load had been seen before it, by each of `figures`, give or take `margin`."""
    spans = [(of, _span(before, target, of, margin)) for of in figures]
    return tuple(b for b in after if all(_within(of(b, target), span) for of, span in spans))


def _span(blocks: Sequence[Block], target: str, of: LoadFigure, margin: float) -> tuple[float, float] | None:
    """From the lowest to the highest value seen, give or take `margin`; None where it was never known."""
    seen = [value for block in blocks if (value := of(block, target)) is not None]
    return (min(seen) / (1 + margin), max(seen) * (1 + margin)) if seen else None


def _within(value: float | None, span: tuple[float, float] | None) -> bool:
    return span is None or (value is not None and span[0] <= value <= span[1])


def onset_s(
    comparison: Comparison, metric: Metric, *, adjusted: bool = True, least: int = ONSET_BLOCKS_MIN
) -> float | None:
    """When the metric's level last changed by itself before the change, if it clearly did.

    A change is compared with the trouble it answers, not with the good time before it.

    Args:
        adjusted: as in `Comparison.change`.
        least: blocks the new level must have lasted.
    """
    recent = comparison.last_regime
    best: tuple[float, float] | None = None
    once = replace(comparison, figures={b.end_s: comparison.figure(metric, b) for b in comparison.before})
    for count in range(least, ONSET_BLOCKS_MAX + 1):
        if len(recent) - count < ONSET_BLOCKS_MIN + 1:
            break
        trial = replace(once, before=once.before[:-count], after=once.before[-count:])
        change = trial.change(metric, ONSET_ALPHA, adjusted=adjusted)
        if change is None or change.low <= 0 <= change.high:
            continue
        if abs(change.point) < metric.scale.onset_min:
            continue
        clarity = abs(change.point) / (change.high - change.low + 1e-12)
        if best is None or clarity > best[0]:
            best = (clarity, recent[-count].start_s)
    return None if best is None else best[1]
