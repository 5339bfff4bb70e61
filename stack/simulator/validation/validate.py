"""The whole validation: select rows, fit on some, simulate the others, compare."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from stack.errors import InputError
from stack.simulator.validation.case import Case
from stack.simulator.validation.contradictions import contradicted
from stack.simulator.validation.profiles import FittedProfiles, fitted_profiles
from stack.simulator.validation.rows import read_rows
from stack.simulator.validation.score import Compared
from stack.simulator.validation.selection import LeftOut, select
from stack.simulator.validation.split import halves
from stack.simulator.validation.trial import simulated_figures

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Validation:
    """What a validation found.

    Attributes:
        rows: in the tested file.
        usable: of them, those that can be compared, whichever half they are in.
        contradicted: ids of usable rows that other measured rows contradict; they are compared all the same.
        profiles: fitted constants.
        tested: rows that were not fitted on, compared.
        open_loop: open-loop rows, each simulated with constants fitted without any row of its model.
        left_out: rows of the tested file that are not compared.
        fit_left_out: the same of the file that was fitted on; empty where it is the same file.
        in_both: ids of tested rows that the fit file also has.
    """

    rows: int
    usable: int
    contradicted: frozenset[str]
    profiles: FittedProfiles
    tested: tuple[Compared, ...]
    open_loop: tuple[Compared, ...]
    left_out: tuple[LeftOut, ...]
    fit_left_out: tuple[LeftOut, ...]
    in_both: tuple[str, ...]


def validate(path: Path, fit: Path | None = None, progress: Progress = lambda text: None) -> Validation:
    """Compare the rows of `path` with simulations.

    Args:
        fit: file to fit on; without it one half of `path` is fitted on and the other tested.
        progress: is told what is being done.

    Raises:
        InputError: a broken file, or no row that can be compared or fitted on.
    """
    progress(f"reading {path}")
    rows, fit_rows = read_rows(path), read_rows(fit) if fit else ()
    selected, other = select(rows, fit_rows), select(fit_rows, rows) if fit else None
    if not selected.cases:
        raise InputError(f"{path}: none of {len(rows)} rows can be compared; the first: {selected.left_out[0].reason}")
    to_fit, to_test = (other.cases, selected.cases) if other else halves(selected.cases)
    if not to_test:
        raise InputError(f"{path}: one usable row cannot be fitted on and tested as well; give another file to fit on")
    progress(f"fitting on {len(to_fit)} rows")
    profiles = fitted_profiles(to_fit)
    progress(f"simulating {len(to_test)} rows")
    tested = compared(to_test, profiles)
    progress("leaving one model out at a time")
    open_loop = leaving_models_out(other.cases if other else selected.cases, selected.cases)
    keys = {_key(case) for case in to_fit} if other else set()
    return Validation(
        rows=len(rows),
        usable=len(selected.cases),
        contradicted=contradicted(selected.cases),
        profiles=profiles,
        tested=tuple(tested),
        open_loop=tuple(open_loop),
        left_out=selected.left_out,
        fit_left_out=other.left_out if other else (),
        in_both=tuple(case.row.row_id for case in to_test if _key(case) in keys),
    )


def compared(cases: Iterable[Case], profiles: FittedProfiles) -> list[Compared]:
    """Each row simulated with the constants of its generation, or of the nearest one."""
    return [Compared(case, simulated_figures(case, profiles.profile_for(case.generation))) for case in cases]


def leaving_models_out(fit: Sequence[Case], test: Sequence[Case]) -> list[Compared]:
    """Open-loop rows of `test`, with constants fitted on the rows of `fit` of all other models.

    Only generations of open-loop rows are fitted, unless nothing is left of them.
    """
    found: list[Compared] = []
    rows = [case for case in test if case.row.is_open_loop]
    generations = {case.generation for case in rows}
    for model in sorted({case.model for case in rows}):
        others = [case for case in fit if case.model != model]
        basis = [case for case in others if case.generation in generations] or others
        if basis:
            found += compared([case for case in rows if case.model == model], fitted_profiles(basis))
    return found


def _key(case: Case) -> tuple[object, ...]:
    return (case.row.row_id, case.row.source, case.row.dataset)
