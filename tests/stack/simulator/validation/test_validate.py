"""Rows that the simulator itself has made, with hidden constants: the fit must find them."""

from dataclasses import replace
from pathlib import Path
from statistics import median

import pytest
from made_rows import open_row, row, written

from stack.errors import InputError
from stack.simulator.hardware.overhead import DENSE, EngineProfile, KernelScale
from stack.simulator.validation.case import case_of
from stack.simulator.validation.document import document
from stack.simulator.validation.fit import fitted_profile
from stack.simulator.validation.profiles import fitted_profiles
from stack.simulator.validation.rows import MeasuredRow
from stack.simulator.validation.trial import simulated_figures
from stack.simulator.validation.validate import validate

HIDDEN = EngineProfile(1.2, 0.03, 0.012, True, (KernelScale(DENSE, "h100", 1.04, 1.2),))
SHORT = {"output_tokens": 64.0}


def as_measured(one: MeasuredRow, hidden: EngineProfile = HIDDEN, factor: float = 1.0) -> MeasuredRow:
    """The row with the figures of a simulation with hidden constants."""
    found = simulated_figures(case_of(replace(one, tpot_mean_ms=999.0, ttft_mean_ms=999.0)), hidden)
    if one.is_open_loop:
        return replace(
            one,
            ttft_p50_ms=found.ttft_p50_ms,
            ttft_p99_ms=found.ttft_p99_ms,
            tpot_p50_ms=found.tpot_ms,
            e2e_p50_ms=found.e2e_ms,
        )
    return replace(one, ttft_mean_ms=found.ttft_ms, tpot_mean_ms=found.tpot_ms * factor)


def closed_rows(engine: str = "vllm 0.18.0") -> list[MeasuredRow]:
    loads = [(users, prompt) for prompt in (128.0, 1024.0, 4096.0) for users in (1.0, 4.0, 16.0, 48.0)]
    return [
        as_measured(row(f"{engine}/{users}/{prompt}", engine=engine, concurrency=users, prompt_tokens=prompt, **SHORT))
        for users, prompt in loads
    ]


def test_the_fit_finds_hidden_constants():
    found = fitted_profile([case_of(one) for one in closed_rows()])
    assert found.step_ms == pytest.approx(HIDDEN.step_ms, abs=0.25)
    assert found.sequence_ms == pytest.approx(HIDDEN.sequence_ms, abs=0.006)
    assert found.frontend_s == pytest.approx(HIDDEN.frontend_s, abs=0.006)
    assert found.kernels[0].decode == pytest.approx(1.04, abs=0.035)
    assert found.kernels[0].prefill == pytest.approx(1.2, abs=0.06)
    assert found.provenance == "12 rows of vllm-0.18"


def test_odd_rows_hardly_pull():
    """Two of twelve are 60 % slower than the rest."""
    rows = closed_rows()
    rows[3], rows[6] = (replace(one, tpot_mean_ms=one.tpot_mean_ms * 1.6) for one in (rows[3], rows[6]))
    found = fitted_profile([case_of(one) for one in rows])
    good = [case_of(one) for index, one in enumerate(rows) if index not in (3, 6)]
    errors = [simulated_figures(case, found).tpot_ms / case.measured.tpot_ms - 1 for case in good]
    assert median(abs(error) for error in errors) < 0.025
    assert found.step_ms < HIDDEN.step_ms + 0.6


def test_half_is_fitted_and_the_other_half_predicted(tmp_path: Path):
    result = document(validate(written(tmp_path / "rows.csv", closed_rows())))
    assert (result["rows"], result["usable"], result["tested"]) == (12, 12, 6)
    assert result["by_generation"]["vllm-0.18"]["fitted_on"] == 6
    assert result["tpot"]["mdape"] < 0.01
    assert result["tpot"]["p90"] < 0.03
    assert result["e2e"]["mdape"] < 0.01
    assert result["kendall_tau"] > 0.99
    assert result["slo_picks_broken"] == 0.0
    assert result["left_out"] == []
    assert result["ttft_p50"] is None


def test_one_file_fitted_another_tested(tmp_path: Path):
    """The tested file has a generation and a model that the fitted one has not."""
    new = as_measured(row("new", engine="vllm 0.20.1", concurrency=16.0, **SHORT))
    other = as_measured(row("other", model="Qwen/Qwen3-8B", concurrency=16.0, **SHORT))
    unknown = row("unknown", model="acme/Mystery-9B")
    fit = written(tmp_path / "fit.csv", closed_rows())
    test = written(tmp_path / "test.csv", [new, other, unknown, closed_rows()[0]])
    result = document(validate(test, fit))
    assert (result["rows"], result["tested"]) == (4, 3)
    assert result["by_generation"]["vllm-0.20"]["constants_of"] == "vllm-0.18"
    assert result["by_generation"]["vllm-0.20"]["fitted_on"] == 0
    assert result["by_model"]["qwen3-8b"]["tpot"]["mdape"] < 0.03
    assert [(one["row_id"], one["line"], one["reason"]) for one in result["left_out"]] == [
        ("unknown", 4, "no step times for model acme/Mystery-9B")
    ]
    assert result["in_both"] == ["vllm 0.18.0/1.0/128.0"]


def test_open_loop_rows_are_predicted_without_their_own_model(tmp_path: Path):
    """Qwen3-8B is made to differ from the tables; that must not help to predict its own TTFT."""
    odd = replace(HIDDEN, frontend_s=0.2)
    rows = [
        as_measured(open_row("1", request_rate_per_s=2.0, prompt_tokens=700.0)),
        as_measured(open_row("2", request_rate_per_s=5.0, prompt_tokens=700.0)),
        as_measured(open_row("3", model="Qwen/Qwen3-8B", request_rate_per_s=3.0), odd),
    ]
    result = document(validate(written(tmp_path / "rows.csv", rows)))
    errors = {
        one["row_id"]: one["simulated"]["ttft_p50_ms"] / one["measured"]["ttft_p50_ms"] - 1
        for one in result["open_loop_cases"]
    }
    assert set(errors) == {"1", "2", "3"}
    assert errors["3"] < -0.5
    assert result["ttft_p50"]["n"] == 3
    assert result["by_generation"]["vllm-0.18"]["ttft_p99"]["n"] == 3


def test_files_in_which_nothing_can_be_compared(tmp_path: Path):
    bad = written(tmp_path / "bad.csv", [row("1", quality="C (made up)")])
    good = written(tmp_path / "good.csv", closed_rows()[:2])
    with pytest.raises(InputError, match=r"none of 1 rows can be compared; the first: its file rates it C"):
        validate(bad)
    with pytest.raises(InputError, match="no row is left to fit on"):
        validate(good, bad)


def test_twice_the_same(tmp_path: Path):
    path = written(tmp_path / "rows.csv", closed_rows()[:4])
    assert document(validate(path)) == document(validate(path))


def test_kernels_that_a_generation_has_no_rows_of_come_from_another():
    """Prompts take 1.6 times as long in experts as the tables say, in 0.18; 0.12 has dense rows only."""
    experts = KernelScale("experts in mxfp4", "h100", 1.0, 1.6)
    hidden = replace(HIDDEN, kernels=(*HIDDEN.kernels, experts))
    facts = {"model": "openai/gpt-oss-20b", "precision": "fp4"}
    mixed = [
        as_measured(row(f"{users}/{prompt}", concurrency=users, prompt_tokens=prompt, **facts), hidden)
        for users in (2.0, 8.0, 32.0)
        for prompt in (1024.0, 8192.0)
    ]
    found = fitted_profiles([case_of(one) for one in (*closed_rows("vllm 0.12.0"), *mixed)])
    older = found.profile_for("vllm-0.12")
    assert found.rows == {"vllm-0.12": 12, "vllm-0.18": 6}
    assert not older.async_lag
    assert older.scale("experts in mxfp4", "h100") == found.by_generation["vllm-0.18"].kernels[0]
    assert older.scale("experts in mxfp4", "h100").prefill == pytest.approx(1.6, abs=0.2)
    assert older.scale(DENSE, "h100") == found.by_generation["vllm-0.12"].kernels[0]
