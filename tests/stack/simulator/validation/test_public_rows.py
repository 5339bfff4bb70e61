"""Public benchmark rows, where their file lies beside the project: bounds that leave room for other machines."""

from pathlib import Path

import pytest

from stack.simulator.hardware.overhead import PROFILES
from stack.simulator.validation.rows import read_rows
from stack.simulator.validation.score import Compared, errors_of
from stack.simulator.validation.selection import select
from stack.simulator.validation.trial import simulated_figures

ROWS = Path(__file__).parents[5] / "shared" / "measured" / "measured_vllm.csv"


@pytest.mark.skipif(not ROWS.is_file(), reason="the file of public benchmark rows is not here")
def test_shipped_profiles_fit_the_rows_they_come_from():
    rows = read_rows(ROWS)
    found = select(rows)
    assert len(found.cases) + len(found.left_out) == len(rows)
    assert len(found.cases) > 150
    compared = [
        Compared(case, simulated_figures(case, PROFILES[case.generation]))
        for case in found.cases[::3]
        if case.generation in PROFILES
    ]
    tpot = errors_of(compared, lambda figures: figures.tpot_ms)
    e2e = errors_of(compared, lambda figures: figures.e2e_ms)
    assert tpot is not None
    assert e2e is not None
    assert tpot.n > 40
    assert tpot.mdape < 0.05
    assert tpot.p90 < 0.15
    assert e2e.mdape < 0.06
