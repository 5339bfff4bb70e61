"""A validation as the documented JSON object."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from typing import Any

from stack.simulator.hardware.overhead import EngineProfile
from stack.simulator.validation.figures import Figures
from stack.simulator.validation.picks import picks_of, tokens_per_s_per_gpu
from stack.simulator.validation.score import Compared, errors_of, kendall_tau
from stack.simulator.validation.selection import LeftOut
from stack.simulator.validation.validate import Validation

Json = dict[str, Any]
DIGITS = 4


def document(validation: Validation) -> Json:
    """See docs/accuracy.md for its fields; errors and shares are ratios."""
    tested = validation.tested
    picks = picks_of(tested)
    return {
        "rows": validation.rows,
        "usable": validation.usable,
        "tested": len(tested),
        "in_both": list(validation.in_both),
        "contradicted": sorted(validation.contradicted),
        "left_out": [_left_out(one) for one in validation.left_out],
        "fit_left_out": [_left_out(one) for one in validation.fit_left_out],
        "by_generation": {name: _generation(name, validation) for name in _distinct(tested, _generation_of)},
        "by_model": {
            name: {"n": len(rows), **_errors(rows)}
            for name in _distinct(tested, _model_of)
            for rows in [[one for one in tested if _model_of(one) == name]]
        },
        **_errors(tested),
        "tpot_uncontradicted": _uncontradicted(tested, validation),
        **_open_loop(validation.open_loop),
        "slo_picks": None if picks is None else _rounded(asdict(picks)),
        "slo_picks_broken": None if picks is None else round(picks.broken, DIGITS),
        "kendall_tau": _tau(tested, lambda one, figures: figures.tpot_ms),
        "kendall_tau_throughput": _tau([one for one in tested if not one.case.row.is_open_loop], tokens_per_s_per_gpu),
        "cases": [_case(one) for one in tested],
        "open_loop_cases": [_case(one) for one in validation.open_loop],
    }


def _generation(name: str, validation: Validation) -> Json:
    rows = [one for one in validation.tested if _generation_of(one) == name]
    source = validation.profiles.source_of(name)
    return {
        "n": len(rows),
        "fitted_on": validation.profiles.rows.get(name, 0),
        "constants_of": source,
        "constants": _constants(validation.profiles.profile_for(name)),
        **_errors(rows),
        "tpot_uncontradicted": _uncontradicted(rows, validation),
        **_open_loop([one for one in validation.open_loop if _generation_of(one) == name]),
    }


def _errors(rows: Sequence[Compared]) -> Json:
    return {
        "tpot": _summary(rows, lambda figures: figures.tpot_ms),
        "e2e": _summary(rows, lambda figures: figures.e2e_ms),
        "ttft": _summary(rows, lambda figures: figures.ttft_ms),
    }


def _uncontradicted(rows: Sequence[Compared], validation: Validation) -> Json | None:
    kept = [one for one in rows if one.case.row.row_id not in validation.contradicted]
    return _summary(kept, lambda figures: figures.tpot_ms)


def _open_loop(rows: Sequence[Compared]) -> Json:
    """TTFT of open-loop rows, with constants fitted without the row's model."""
    return {
        "ttft_p50": _summary(rows, lambda figures: figures.ttft_p50_ms),
        "ttft_p99": _summary(rows, lambda figures: figures.ttft_p99_ms),
    }


def _summary(rows: Sequence[Compared], figure: Callable[[Figures], float | None]) -> Json | None:
    found = errors_of(rows, figure)
    return None if found is None else _rounded(asdict(found))


def _constants(profile: EngineProfile) -> Json:
    return {
        "step_ms": round(profile.step_ms, DIGITS),
        "sequence_ms": round(profile.sequence_ms, DIGITS + 1),
        "frontend_s": round(profile.frontend_s, DIGITS + 1),
        "async_lag": profile.async_lag,
        "kernels": [_rounded(asdict(scale)) for scale in profile.kernels],
    }


def _case(one: Compared) -> Json:
    measured, simulated = asdict(one.measured), asdict(one.simulated)
    return {
        "row_id": one.case.row.row_id,
        "generation": one.case.generation,
        "model": one.case.model,
        "gpu": one.case.gpu,
        "tensor_parallel": one.case.row.tensor_parallel,
        "measured": _rounded({name: value for name, value in measured.items() if value is not None}),
        "simulated": _rounded({name: simulated[name] for name, value in measured.items() if value is not None}),
    }


def _left_out(one: LeftOut) -> Json:
    row = one.row
    return {"row_id": row.row_id, "line": row.line, "dataset": row.dataset, "model": row.model, "reason": one.reason}


def _tau(rows: Sequence[Compared], figure: Callable[[Compared, Figures], float]) -> float | None:
    """Over pairs of rows of one benchmark and model."""
    keys = _distinct(rows, lambda one: (one.case.row.dataset, one.case.model, one.case.precision))
    groups = [
        [(figure(one, one.measured), figure(one, one.simulated)) for one in rows if key == _series(one)] for key in keys
    ]
    found = kendall_tau(groups)
    return None if found is None else round(found, DIGITS)


def _series(one: Compared) -> tuple[str, str, str]:
    return (one.case.row.dataset, one.case.model, one.case.precision)


def _distinct(rows: Iterable[Compared], of: Callable[[Compared], Any]) -> list[Any]:
    return sorted({of(one) for one in rows})


def _generation_of(one: Compared) -> str:
    return one.case.generation


def _model_of(one: Compared) -> str:
    return one.case.model


def _rounded(values: Json) -> Json:
    return {name: round(value, DIGITS) if isinstance(value, float) else value for name, value in values.items()}
