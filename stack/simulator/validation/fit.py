"""Fitting the few constants of an engine generation to measured rows.

Gauss-Newton on logarithms of simulated over measured figures, with two guards: a robust loss (weights fall as one over
the residual beyond a threshold, so that some odd rows do not pull) and the beliefs of `constants` as a weak prior, so
that what few rows cannot tell stays at a physical value.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from stack.errors import InputError
from stack.simulator.engine.layout import Floats
from stack.simulator.overhead import EngineProfile
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
ROUNDS = 5
SETTLED = 1e-3
"""Fitting ends when no constant moves by more than this share of its believed deviation."""


def fitted_profile(cases: Sequence[Case]) -> EngineProfile:
    """The constants of one generation, from rows measured on it.

    Raises:
        InputError: no rows, or rows of several generations.
    """
    generations = sorted({case.generation for case in cases})
    if len(generations) != 1:
        raise InputError(f"a profile is fitted on rows of one generation, not {', '.join(generations) or 'none'}")
    layout = Layout(tuple(sorted({(case.family, case.gpu) for case in cases})))
    async_lag = schedules_asynchronously(generations[0])
    vector = layout.start()
    slopes = np.zeros((0, 0))
    for turn in range(ROUNDS):
        errors = _errors(cases, layout.profile(vector, async_lag))
        if turn % 2 == 0:
            slopes = _slopes(cases, layout, vector, async_lag, errors)
        moved = layout.bounded(vector + _move(layout, vector, errors, slopes))
        settled = np.abs(moved - vector) < SETTLED * np.array([belief.deviation for belief in layout.beliefs])
        vector = moved
        if settled.all():
            break
    profile = layout.profile(vector, async_lag)
    return replace(profile, provenance=f"{len(cases)} rows of {generations[0]}")


def _errors(cases: Sequence[Case], profile: EngineProfile) -> Floats:
    """Weighted logarithms of simulated over measured TPOT, E2E and TTFT, row after row."""
    found = []
    for case in cases:
        measured, simulated = case.measured, simulated_figures(case, profile)
        found += [
            np.log(simulated.tpot_ms / measured.tpot_ms),
            np.log(simulated.e2e_ms / measured.e2e_ms),
            TTFT_WEIGHT[case.row.is_open_loop] * np.log(simulated.ttft_ms / measured.ttft_ms),
        ]
    return np.array(found)


def _slopes(cases: Sequence[Case], layout: Layout, vector: Floats, async_lag: bool, errors: Floats) -> Floats:
    """How the errors change with each constant: (errors, constants)."""
    columns = []
    for index, belief in enumerate(layout.beliefs):
        tried = vector.copy()
        tried[index] += belief.step
        columns.append((_errors(cases, layout.profile(tried, async_lag)) - errors) / belief.step)
    return np.array(columns).T


def _move(layout: Layout, vector: Floats, errors: Floats, slopes: Floats) -> Floats:
    """One step: weighted least squares of the errors and of the distance from what is believed."""
    weight = np.sqrt(np.minimum(1.0, ODD * SCATTER / np.maximum(np.abs(errors), 1e-12))) / SCATTER
    width = np.array([belief.deviation for belief in layout.beliefs])
    left = np.vstack([slopes * weight[:, None], np.diag(1 / width)])
    right = np.concatenate([-errors * weight, (layout.start() - vector) / width])
    move: Floats = np.linalg.lstsq(left, right, rcond=None)[0]
    return move
