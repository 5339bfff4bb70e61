"""Reading measured rows: what is right comes through, what is broken is named with its place."""

from pathlib import Path

import pytest
from made_rows import COLUMNS, open_row, row, written

from stack.errors import InputError
from stack.simulator.validation.rows import read_rows


def test_what_is_written_is_read(tmp_path: Path):
    rows = [row("1"), open_row("2"), row("3", ttft_mean_ms=None)]
    read = read_rows(written(tmp_path / "rows.csv", rows))
    assert [(one.row_id, one.line) for one in read] == [("1", 2), ("2", 3), ("3", 4)]
    assert read[0].concurrency == 8.0
    assert read[1].is_open_loop
    assert read[1].ttft_p99_ms == 60.0
    assert read[2].ttft_mean_ms is None


def changed(path: Path, line: int, column: str, text: str) -> Path:
    lines = [one.split(",") for one in path.read_text().splitlines()]
    lines[line - 1][COLUMNS.index(column)] = text
    path.write_text("\n".join(",".join(cells) for cells in lines) + "\n")
    return path


@pytest.mark.parametrize(
    ("column", "text", "says"),
    [
        ("ttft_mean_ms", "fast", r"rows.csv line 3: ttft_mean_ms must be a number, not 'fast'"),
        ("tpot_mean_ms", "nan", r"line 3: tpot_mean_ms must be a number, not 'nan'"),
        ("isl", "-5", r"line 3: isl must be a positive number, not '-5'"),
        ("concurrency", "1.5", r"line 3: concurrency must be a whole number, not '1.5'"),
        ("concurrency", "1_000", r"line 3: concurrency must be a number, not '1_000'"),
        ("osl", "٣", r"line 3: osl must be a number"),
        ("isl", "1e-30", r"line 3: isl must lie in 1 to inf"),
        ("tpot_mean_ms", "1e30", r"line 3: tpot_mean_ms must lie in 0 to 1e\+08"),
        ("tp", "1.5", r"line 3: tp must be a whole number of GPUs, not '1.5'"),
        ("tp", "", r"line 3: tp must be a whole number of GPUs, not ''"),
        ("model", " ", r"line 3: row_id and model must not be empty"),
        ("row_id", "1", r"line 3: row_id 1 is already that of line 2"),
    ],
)
def test_a_bad_cell_is_named_with_its_line(tmp_path: Path, column: str, text: str, says: str):
    path = changed(written(tmp_path / "rows.csv", [row("1"), row("2")]), 3, column, text)
    with pytest.raises(InputError, match=says):
        read_rows(path)


def test_a_missing_column_is_named(tmp_path: Path):
    path = written(tmp_path / "rows.csv", [row("1")])
    path.write_text(path.read_text().replace("tpot_mean_ms", "tpot_ms"))
    with pytest.raises(InputError, match=r"rows.csv: no column tpot_mean_ms; found row_id"):
        read_rows(path)


def test_a_line_with_cells_missing_or_too_many(tmp_path: Path):
    path = written(tmp_path / "rows.csv", [row("1")])
    whole = path.read_text()
    path.write_text(whole + "2,made\n")
    with pytest.raises(InputError, match=rf"line 3: expected {len(COLUMNS)} cells, found 2"):
        read_rows(path)
    path.write_text(whole.rstrip("\n") + ",7\n")
    with pytest.raises(InputError, match=rf"line 2: expected {len(COLUMNS)} cells, found {len(COLUMNS) + 1}"):
        read_rows(path)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "found an empty file"),
        (",".join(COLUMNS).encode() + b"\n", "no rows below the heading"),
        (b"\xff\xfe\x00binary", "expected a CSV file in UTF-8"),
    ],
)
def test_files_that_are_none(tmp_path: Path, content: bytes, says: str):
    path = tmp_path / "rows.csv"
    path.write_bytes(content)
    with pytest.raises(InputError, match=says):
        read_rows(path)


def test_an_absent_file(tmp_path: Path):
    with pytest.raises(InputError, match=r"absent.csv: No such file"):
        read_rows(tmp_path / "absent.csv")
