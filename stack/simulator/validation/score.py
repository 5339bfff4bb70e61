"""How far simulated figures lie from measured ones, and whether they lead to the same decisions."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from stack.simulator.validation.case import Case
from stack.simulator.validation.figures import Figures


@dataclass(frozen=True)
class Compared:
    """One tested row: what was measured and what was simulated."""

    case: Case
    simulated: Figures

    @property
    def measured(self) -> Figures:
        """What the row says."""
        return self.case.measured


@dataclass(frozen=True)
class ErrorSummary:
    """Errors of one figure over some rows, as ratios (0.04 = 4 %).

    Attributes:
        mdape: median of |simulated / measured - 1|.
        p90: its 90th percentile, linearly interpolated.
        bias: median of simulated / measured - 1; negative where the simulation is too fast.
    """

    n: int
    mdape: float
    p90: float
    bias: float


def error_summary(measured: Sequence[float], simulated: Sequence[float]) -> ErrorSummary | None:
    """Summary of the relative errors; None without rows."""
    if not measured:
        return None
    errors = np.asarray(simulated) / np.asarray(measured) - 1.0
    size = np.abs(errors)
    return ErrorSummary(
        n=len(errors),
        mdape=float(np.median(size)),
        p90=float(np.percentile(size, 90)),
        bias=float(np.median(errors)),
    )


def errors_of(compared: Iterable[Compared], figure: Callable[[Figures], float | None]) -> ErrorSummary | None:
    """Errors of one figure over the rows that give it."""
    pairs = [(figure(one.measured), figure(one.simulated)) for one in compared]
    both = [(measured, simulated) for measured, simulated in pairs if measured is not None and simulated is not None]
    return error_summary([measured for measured, _ in both], [simulated for _, simulated in both])


def kendall_tau(groups: Iterable[Sequence[tuple[float, float]]]) -> float | None:
    """Kendall's tau-b of (measured, simulated), over pairs within a group only; None without a pair that differs.

    Source: M. G. Kendall, "The treatment of ties in ranking problems", Biometrika 33 (1945).
    """
    agreeing, measured_pairs, simulated_pairs = 0, 0, 0
    for group in groups:
        for (measured, simulated), (other_measured, other_simulated) in combinations(group, 2):
            first, second = np.sign(measured - other_measured), np.sign(simulated - other_simulated)
            agreeing += int(first * second)
            measured_pairs += int(first != 0)
            simulated_pairs += int(second != 0)
    if not measured_pairs or not simulated_pairs:
        return None
    return float(agreeing / np.sqrt(measured_pairs * simulated_pairs))
