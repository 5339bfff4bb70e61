"""Dividing measured rows into those that are fitted and those that are tested."""

from collections.abc import Sequence

from stack.simulator.validation.case import Case


def halves(cases: Sequence[Case]) -> tuple[list[Case], list[Case]]:
    """Alternately within each dataset, model and GPU, in the order of the file, the first to the fit.

    Rows with the same inputs are repetitions: they go to one side together, or the test would know its answers.
    """
    sides: dict[tuple[object, ...], int] = {}
    counts: dict[tuple[str, ...], int] = {}
    divided: tuple[list[Case], list[Case]] = ([], [])
    for case in cases:
        series = (case.row.dataset, case.model, case.gpu)
        inputs = (*series, *_inputs(case))
        if inputs not in sides:
            sides[inputs] = counts.get(series, 0) % 2
            counts[series] = counts.get(series, 0) + 1
        divided[sides[inputs]].append(case)
    return divided


def _inputs(case: Case) -> tuple[object, ...]:
    row = case.row
    load = (row.concurrency, row.request_rate_per_s, row.prompt_tokens, row.output_tokens)
    return (case.generation, case.precision, row.tensor_parallel, *load)
