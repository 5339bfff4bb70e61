"""Measured benchmark rows from a CSV file, typed; a broken file is refused with the place of its fault."""

import csv
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stack.errors import InputError

TEXTS = (
    "row_id",
    "dataset",
    "source",
    "model",
    "precision",
    "gpu",
    "engine",
    "load",
    "prefix_caching",
    "quality",
    "note",
)
"""Columns of text; all of them must exist."""
NUMBERS = {
    "request_rate": "request_rate_per_s",
    "concurrency": "concurrency",
    "isl": "prompt_tokens",
    "osl": "output_tokens",
    "max_num_batched_tokens": "max_num_batched_tokens",
    "max_num_seqs": "max_num_seqs",
    "ttft_mean_ms": "ttft_mean_ms",
    "ttft_p50_ms": "ttft_p50_ms",
    "ttft_p99_ms": "ttft_p99_ms",
    "tpot_mean_ms": "tpot_mean_ms",
    "tpot_p50_ms": "tpot_p50_ms",
    "e2e_mean_ms": "e2e_mean_ms",
    "e2e_p50_ms": "e2e_p50_ms",
}
"""Columns that hold a positive number or nothing, and their attribute."""
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
WHOLE = ("concurrency", "max_num_seqs", "max_num_batched_tokens")
MOST_MS = 1e8
"""More than a day; nothing that was measured takes so long."""
BOUNDS = {"isl": (1.0, math.inf), "osl": (1.0, math.inf)}


@dataclass(frozen=True, kw_only=True)
class MeasuredRow:
    """One benchmark run as published; None where a figure was not.

    Attributes:
        line: its line in the file.
        load: how requests were sent: closed (so many users), open-constant (a rate), burst ...
        concurrency: users of a closed loop.
        prompt_tokens, output_tokens: mean or exact, as the note says.
    """

    line: int
    row_id: str
    dataset: str
    source: str
    model: str
    precision: str
    gpu: str
    tensor_parallel: int
    engine: str
    load: str
    prefix_caching: str
    quality: str
    note: str
    request_rate_per_s: float | None = None
    concurrency: float | None = None
    prompt_tokens: float | None = None
    output_tokens: float | None = None
    max_num_batched_tokens: float | None = None
    max_num_seqs: float | None = None
    ttft_mean_ms: float | None = None
    ttft_p50_ms: float | None = None
    ttft_p99_ms: float | None = None
    tpot_mean_ms: float | None = None
    tpot_p50_ms: float | None = None
    e2e_mean_ms: float | None = None
    e2e_p50_ms: float | None = None

    @property
    def is_open_loop(self) -> bool:
        """Whether requests come at times of their own, whatever became of earlier ones."""
        return self.load.startswith("open")


def read_rows(path: Path) -> tuple[MeasuredRow, ...]:
    """All rows of a file.

    Raises:
        InputError: no such file, no text, a column or value is missing, or a number is none; names the line.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            return tuple(_rows(path, csv.DictReader(file, strict=True)))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: expected a CSV file in UTF-8, found other bytes") from None
    except csv.Error as error:
        raise InputError(f"{path}: not a CSV file: {error}") from None


def _rows(path: Path, reader: "csv.DictReader[str]") -> Iterator[MeasuredRow]:
    columns = reader.fieldnames or ()
    missing = [name for name in (*TEXTS, "tp", *NUMBERS) if name not in columns]
    if missing:
        raise InputError(f"{path}: no column {', '.join(missing)}; found {', '.join(columns) or 'an empty file'}")
    seen: dict[str, int] = {}
    for cells in reader:
        place = f"{path} line {reader.line_num}"
        if None in cells or None in cells.values():
            found = sum(value is not None for key, value in cells.items() if key is not None)
            raise InputError(f"{place}: expected {len(columns)} cells, found {_count(cells, found)}")
        row = _row(cells, place, reader.line_num)
        if row.row_id in seen:
            raise InputError(f"{place}: row_id {row.row_id} is already that of line {seen[row.row_id]}")
        seen[row.row_id] = row.line
        yield row
    if not seen:
        raise InputError(f"{path}: no rows below the heading")


def _count(cells: Mapping[str | None, object], found: int) -> int:
    extra = cells.get(None)
    return found + (len(extra) if isinstance(extra, list) else 0)


def _row(cells: Mapping[str, str], place: str, line: int) -> MeasuredRow:
    gpus = _number(cells, "tp", place)
    if gpus is None or gpus != int(gpus):
        raise InputError(f"{place}: tp must be a whole number of GPUs, not {cells['tp']!r}")
    if not cells["row_id"].strip() or not cells["model"].strip():
        raise InputError(f"{place}: row_id and model must not be empty")
    fields: dict[str, Any] = {name: cells[name].strip() for name in TEXTS}
    fields |= {attribute: _number(cells, name, place) for name, attribute in NUMBERS.items()}
    return MeasuredRow(line=line, tensor_parallel=int(gpus), **fields)


def _number(cells: Mapping[str, str], name: str, place: str) -> float | None:
    text = cells[name].strip()
    if not text:
        return None
    if not NUMBER.fullmatch(text):
        raise InputError(f"{place}: {name} must be a number, not {text!r}")
    value = float(text)
    if not math.isfinite(value) or value <= 0:
        raise InputError(f"{place}: {name} must be a positive number, not {text!r}")
    if name in WHOLE and value != int(value):
        raise InputError(f"{place}: {name} must be a whole number, not {text!r}")
    low, high = BOUNDS.get(name, (0.0, MOST_MS if name.endswith("_ms") else math.inf))
    if not low <= value <= high:
        raise InputError(f"{place}: {name} must lie in {low:g} to {high:g}, not {text!r}")
    return value
