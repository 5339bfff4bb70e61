"""Decisions taken on simulated figures, judged by measured ones."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from stack.simulator.validation.figures import Figures
from stack.simulator.validation.score import Compared

TPOT_LIMITS_MS = (10.0, 12.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0)
BROKEN_ABOVE = 1.05
"""A pick breaks its limit when its measured TPOT is more than 5 % above."""


@dataclass(frozen=True)
class Picks:
    """For each TPOT limit, the configuration with most tokens/s per GPU by simulation, as measured.

    Attributes:
        n: decisions with at least two configurations that keep the limit as measured and one as simulated.
        same: share of picks that are the truly best.
        broken: share whose measured TPOT is above the limit by more than 5 %.
        regret: mean share of throughput per GPU that the picks within their limits give away.
    """

    n: int
    same: float
    broken: float
    regret: float


def picks_of(compared: Iterable[Compared]) -> Picks | None:
    """All decisions within each series of rows that differ in TP and concurrency only; None when there are none."""
    series: dict[tuple[object, ...], list[Compared]] = defaultdict(list)
    for one in compared:
        if not one.case.row.is_open_loop:
            case = one.case
            key = (case.row.dataset, case.model, case.gpu, case.precision, case.prompt_tokens, case.output_tokens)
            series[key].append(one)
    made = [pick for rows in series.values() for limit in TPOT_LIMITS_MS if (pick := _pick(rows, limit)) is not None]
    if not made:
        return None
    kept = [regret for _, broken, regret in made if not broken]
    return Picks(
        n=len(made),
        same=float(np.mean([same for same, _, _ in made])),
        broken=float(np.mean([broken for _, broken, _ in made])),
        regret=float(np.mean(kept)) if kept else 0.0,
    )


def _pick(rows: Sequence[Compared], limit_ms: float) -> tuple[bool, bool, float] | None:
    """Whether the pick is the best, whether it breaks its limit, and its regret; None when there is no choice."""
    allowed = [one for one in rows if one.measured.tpot_ms <= limit_ms]
    tempting = [one for one in rows if one.simulated.tpot_ms <= limit_ms]
    if len(allowed) < 2 or not tempting:
        return None
    best = max(tokens_per_s_per_gpu(one, one.measured) for one in allowed)
    pick = max(tempting, key=lambda one: tokens_per_s_per_gpu(one, one.simulated))
    got = tokens_per_s_per_gpu(pick, pick.measured)
    broken = pick.measured.tpot_ms > limit_ms * BROKEN_ABOVE
    return got == best, broken, max(0.0, 1.0 - got / best)


def tokens_per_s_per_gpu(one: Compared, figures: Figures) -> float:
    """Output tokens per second and GPU of a closed loop (Little's law: concurrency over E2E, times the length)."""
    row = one.case.row
    return (row.concurrency or 1.0) * one.case.output_tokens * 1e3 / figures.e2e_ms / row.tensor_parallel
