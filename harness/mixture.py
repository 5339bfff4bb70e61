"""What a shift of traffic between replicas did, over the same minutes.

Each block's fleet figure is set against what the same replicas, as measured in that block, would have given at the
former shares. Bursts and drifts hit both alike and cancel. The relieved replica would have been no faster with its
former share, so its part of the gain is not overstated; that the others were burdened is what the comparison with
the fleet's own past is for.
"""

from collections.abc import Mapping, Sequence
from math import log

import numpy as np

from harness.block import Block
from harness.metric import Metric
from harness.objective import Slo
from harness.verification_statistics import Interval, Series, level_change
from stack.snapshot import Signal

REPLICAS_MIN = 2


def share_effect(
    before: Sequence[Block], after: Sequence[Block], metric: Metric, slo: Slo, alpha: float
) -> Interval | None:
    """Log ratio of the fleet's figure to the same at the former shares; None when it cannot be told."""
    blocks = (*before, *after)
    names = sorted(set.intersection(*(set(block.replicas) for block in blocks))) if blocks else []
    former = _shares(before, names)
    if len(names) < REPLICAS_MIN or former is None:
        return None
    values = [_ratio(block, names, former, metric, slo) for block in blocks]
    used = [i for i, value in enumerate(values) if value is not None]
    side = np.array([int(i >= len(before)) for i in used], dtype=np.int64)
    if not side.any() or side.all():
        return None
    position = np.array([blocks[i].end_s for i in used]) / blocks[0].length_s
    series = Series(np.array([values[i] for i in used], dtype=float), position, side, np.zeros((len(used), 0)))
    return level_change(series, alpha)


def _shares(blocks: Sequence[Block], names: Sequence[str]) -> Mapping[str, float] | None:
    finished = {name: sum(b.of(name).get(Signal.FINISHED, 0.0) for b in blocks) for name in names}
    total = sum(finished.values())
    return {name: count / total for name, count in finished.items()} if total > 0 else None


def _ratio(block: Block, names: Sequence[str], former: Mapping[str, float], metric: Metric, slo: Slo) -> float | None:
    shares = _shares([block], names)
    values = {name: metric.of(block.of(name), slo) for name in names}
    known = {name: value for name, value in values.items() if value is not None}
    if shares is None or any(former[name] > 0 and name not in known for name in names):
        return None
    now = sum(shares[name] * value for name, value in known.items())
    then = sum(former[name] * value for name, value in known.items())
    return log(now / then) if now > 0 and then > 0 else None
