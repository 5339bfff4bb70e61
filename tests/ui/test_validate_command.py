"""`flashvector simulate validate` as a user meets it."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from stack.errors import InputError
from stack.simulator.validation.rows import NUMBERS, TEXTS
from ui.command import application

COLUMNS = (*TEXTS, "tp", *NUMBERS)
FACTS = {
    "dataset": "made",
    "model": "meta-llama/Llama-3.1-8B",
    "precision": "bf16",
    "gpu": "h100_sxm",
    "tp": "1",
    "engine": "vllm 0.18.0",
    "load": "closed",
    "isl": "512",
    "osl": "64",
    "ttft_mean_ms": "40",
    "quality": "A",
}


def written(path: Path) -> Path:
    rows = [
        {**FACTS, "row_id": "1", "concurrency": "1", "tpot_mean_ms": "6.8"},
        {**FACTS, "row_id": "2", "concurrency": "8", "tpot_mean_ms": "7.8"},
        {**FACTS, "row_id": "3", "concurrency": "8", "tpot_mean_ms": "7.8", "model": "acme/Mystery-9B"},
    ]
    lines = [",".join(row.get(column, "") for column in COLUMNS) for row in rows]
    path.write_text("\n".join([",".join(COLUMNS), *lines]) + "\n")
    return path


def validated(*arguments: str) -> Result:
    return CliRunner().invoke(application(["simulate"]), ["simulate", "validate", *arguments])


def test_the_screen_shows_errors_and_what_was_left_out(tmp_path: Path):
    result = validated(str(written(tmp_path / "rows.csv")))
    assert result.exit_code == 0
    assert "vllm-0.18" in result.stdout
    assert "Left out (1 rows):" in result.stdout
    assert "no step times for model acme/Mystery-9B" in result.stdout


def test_the_documented_json(tmp_path: Path):
    out = tmp_path / "out.json"
    rows = str(written(tmp_path / "rows.csv"))
    assert validated(rows, "--fit", rows, "--json", str(out)).exit_code == 0
    found = json.loads(out.read_text())
    assert found["rows"] == 3
    assert found["by_generation"]["vllm-0.18"]["n"] == 2
    assert set(found["tpot"]) == {"n", "mdape", "p90", "bias"}
    assert {"e2e", "ttft_p50", "slo_picks_broken", "kendall_tau"} <= set(found)
    assert found["in_both"] == ["1", "2"]
    assert found["left_out"] == [
        {
            "row_id": "3",
            "line": 4,
            "dataset": "made",
            "model": "acme/Mystery-9B",
            "reason": "no step times for model acme/Mystery-9B",
        }
    ]


def test_bad_input_is_one_clear_line(tmp_path: Path):
    absent = validated(str(tmp_path / "absent.csv"))
    assert isinstance(absent.exception, InputError)
    assert "absent.csv" in str(absent.exception)
    nowhere = validated(str(written(tmp_path / "rows.csv")), "--json", str(tmp_path / "nowhere" / "out.json"))
    with pytest.raises(InputError, match="nowhere"):
        raise nowhere.exception or AssertionError("expected an error")


def test_measured_rows_are_never_written_over(tmp_path: Path):
    path = written(tmp_path / "rows.csv")
    before = path.read_text()
    with pytest.raises(InputError, match="one of the measured files"):
        raise validated(str(path), "--json", str(path)).exception or AssertionError("expected an error")
    assert path.read_text() == before
