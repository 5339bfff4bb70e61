"""Which rows are compared, and why the others are not."""

from collections.abc import Iterable
from dataclasses import dataclass

from stack.errors import InputError
from stack.simulator.validation.case import Case, WeightsDoNotFitError, case_of
from stack.simulator.validation.rows import MeasuredRow
from stack.simulator.validation.trial import is_overloaded


@dataclass(frozen=True)
class LeftOut:
    """A row that is not compared.

    Attributes:
        reason: decided from its inputs, its quality note or a simulation; never from its error.
    """

    row: MeasuredRow
    reason: str


@dataclass(frozen=True)
class Selection:
    """All rows of a file, in its order, as cases or left out."""

    cases: tuple[Case, ...]
    left_out: tuple[LeftOut, ...]


def select(rows: Iterable[MeasuredRow], other: Iterable[MeasuredRow] = ()) -> Selection:
    """Sort rows into those that can be compared and those that cannot.

    Args:
        other: rows of another file, which may show that a series' layout is not published.
    """
    cases: list[Case] = []
    left_out: list[LeftOut] = []
    unclear = {_series(row) for row in other if _does_not_fit(row)}
    for row in rows:
        try:
            cases.append(case_of(row))
        except WeightsDoNotFitError as error:
            unclear.add(_series(row))
            left_out.append(LeftOut(row, str(error)))
        except InputError as error:
            left_out.append(LeftOut(row, str(error)))
    kept = []
    for case in cases:
        reason = _second_thought(case, unclear)
        if reason is None:
            kept.append(case)
        else:
            left_out.append(LeftOut(case.row, reason))
    return Selection(tuple(kept), tuple(sorted(left_out, key=lambda one: one.row.line)))


def _does_not_fit(row: MeasuredRow) -> bool:
    try:
        case_of(row)
    except WeightsDoNotFitError:
        return True
    except InputError:
        return False
    return False


def _second_thought(case: Case, unclear: set[tuple[str, ...]]) -> str | None:
    if _series(case.row) in unclear:
        return "rows of its series name a TP on which the weights cannot fit, so the whole layout is not published"
    if case.row.is_open_loop and is_overloaded(case):
        return "saturated: in the simulation requests come faster than they are served"
    return None


def _series(row: MeasuredRow) -> tuple[str, ...]:
    return (row.dataset, row.model, row.precision, row.gpu)
