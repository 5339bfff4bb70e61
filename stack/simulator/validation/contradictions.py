"""Measured rows that contradict other measured rows; judged by measurements alone."""

from collections import defaultdict
from collections.abc import Sequence

from stack.simulator.validation.case import Case

CONTRADICTS_ABOVE = 1.05


def contradicted(cases: Sequence[Case]) -> frozenset[str]:
    """Ids of closed-loop rows that are slower by 5 % than a row with more users and otherwise the same inputs.

    More users cannot make the tokens of each come faster, so one of the two was disturbed or labelled wrongly, most
    likely the slower one.
    """
    series: dict[tuple[object, ...], list[Case]] = defaultdict(list)
    for case in cases:
        if not case.row.is_open_loop:
            series[_but_users(case)].append(case)
    return frozenset(
        case.row.row_id
        for found in series.values()
        for case in found
        for other in found
        if _users(other) > _users(case) and case.measured.tpot_ms > CONTRADICTS_ABOVE * other.measured.tpot_ms
    )


def _users(case: Case) -> float:
    return case.row.concurrency or 0.0


def _but_users(case: Case) -> tuple[object, ...]:
    lengths = (case.prompt_tokens, case.output_tokens)
    return (case.row.dataset, case.generation, case.model, case.gpu, case.precision, case.row.tensor_parallel, *lengths)
