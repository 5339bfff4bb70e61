"""Fitting the few constants of an engine generation to measured rows.

Gauss-Newton on logarithms of simulated over measured figures, with two guards: a robust loss (Huber, "Robust
estimation of a location parameter", 1964), so that odd rows pull no harder than good ones, and the beliefs of
`constants` as a weak prior, so that what few rows cannot tell stays at a physical value.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from stack.errors import InputError
from stack.simulator.engine.layout import Floats
from stack.simulator.hardware.overhead import EngineProfile
from stack.simulator.validation.case import Case
from stack.simulator.validation.constants import Layout
from stack.simulator.validation.generations import schedules_asynchronously
from stack.simulator.validation.trial import simulated_figures

SCATTER = 0.03
"""Spread of good rows: published repetitions of one configuration differ by about this."""
ODD = 1.5
"""Residuals beyond this multiple of the scatter lose weight."""
TTFT_WEIGHT = {True: 0.5, False: 0.05}
"""TTFT counts less than TPOT and E2E: in a closed loop (False) it hangs on how users fall into step."""
ROUNDS = 6
HALVINGS = 5
NOTHING = EngineProfile(0.0, 0.0, 0.0, True)
"""Believes that every kernel runs as the tables say."""
SETTLED = 1e-3
"""Fitting ends when no constant moves by more than this share of its believed deviation."""


def fitted_profile(cases: Sequence[Case], believed: EngineProfile | None = None) -> EngineProfile:
    """The constants of one generation, from rows measured on it.

    Args:
        believed: another generation's constants, whose kernel scales are then believed beforehand.

    Raises:
        InputError: no rows, or rows of several generations.
    """
    generations = sorted({case.generation for case in cases})
    if len(generations) != 1:
        raise InputError(f"a profile is fitted on rows of one generation, not {', '.join(generations) or 'none'}")
    kinds = sorted({(case.family, case.gpu) for case in cases})
    layout = Layout(tuple((believed or NOTHING).scale(family, gpu) for family, gpu in kinds))
    fit = _Fit(cases, layout, schedules_asynchronously(generations[0]))
    vector = layout.start()
    errors = fit.errors(vector)
    for _ in range(ROUNDS):
        move = _move(layout, vector, errors, fit.slopes(vector, errors))
        better = fit.best_along(vector, errors, move)
        if better is None:
            break
        settled = np.abs(better[0] - vector) < SETTLED * layout.deviations
        vector, errors = better
        if settled.all():
            break
    profile = fit.profile(vector)
    return replace(profile, provenance=f"{len(cases)} rows of {generations[0]}")


@dataclass(frozen=True)
class _Fit:
    """The rows of one fit, and how their errors depend on the constants."""

    cases: Sequence[Case]
    layout: Layout
    async_lag: bool

    def profile(self, vector: Floats) -> EngineProfile:
        """The generation with these constants."""
        return self.layout.profile(vector, self.async_lag)

    def errors(self, vector: Floats) -> Floats:
        """Weighted logarithms of simulated over measured TPOT, E2E and TTFT, row after row."""
        profile = self.profile(vector)
        return np.concatenate([_errors(case, profile) for case in self.cases])

    def slopes(self, vector: Floats, errors: Floats) -> Floats:
        """How the errors change with each constant: (errors, constants)."""
        columns = []
        for index, belief in enumerate(self.layout.beliefs):
            tried = vector.copy()
            tried[index] += belief.step
            columns.append((self.errors(tried) - errors) / belief.step)
        return np.array(columns).T

    def best_along(self, vector: Floats, errors: Floats, move: Floats) -> tuple[Floats, Floats] | None:
        """The longest of the move and its halves that lowers the loss, with its errors; None if none does."""
        now = _loss(self.layout, vector, errors)
        for halving in range(HALVINGS):
            tried = self.layout.bounded(vector + move / 2**halving)
            found = self.errors(tried)
            if _loss(self.layout, tried, found) < now:
                return tried, found
        return None


def _errors(case: Case, profile: EngineProfile) -> Floats:
    measured, simulated = case.measured, simulated_figures(case, profile)
    weights = np.array([1.0, 1.0, TTFT_WEIGHT[case.row.is_open_loop]])
    ratios = (
        simulated.tpot_ms / measured.tpot_ms,
        simulated.e2e_ms / measured.e2e_ms,
        simulated.ttft_ms / measured.ttft_ms,
    )
    weighted: Floats = weights * np.log(ratios)
    return weighted


def _loss(layout: Layout, vector: Floats, errors: Floats) -> float:
    """Huber's loss of the errors plus the squared distance from what is believed, both in their own spread."""
    size, edge = np.abs(errors) / SCATTER, ODD
    huber = np.where(size <= edge, size**2, 2 * edge * size - edge**2)
    return float(huber.sum() + (((vector - layout.start()) / layout.deviations) ** 2).sum())


def _move(layout: Layout, vector: Floats, errors: Floats, slopes: Floats) -> Floats:
    """One step: weighted least squares of the errors and of the distance from what is believed, within the bounds.

    A constant that would pass its bound stops there, and the others are solved for again without it.
    """
    weight = np.sqrt(np.minimum(1.0, ODD * SCATTER / np.maximum(np.abs(errors), 1e-12))) / SCATTER
    left = np.vstack([slopes * weight[:, None], np.diag(1 / layout.deviations)])
    right = np.concatenate([-errors * weight, (layout.start() - vector) / layout.deviations])
    farthest = layout.bounded(np.full(len(vector), -np.inf)) - vector
    move, free = np.zeros(len(vector)), np.ones(len(vector), dtype=bool)
    while free.any():
        move[free] = np.linalg.lstsq(left[:, free], right - left[:, ~free] @ move[~free], rcond=None)[0]
        beyond = free & (move < farthest)
        if not beyond.any():
            break
        move[beyond] = farthest[beyond]
        free &= ~beyond
    return move
