"""Rows of a made-up benchmark: a closed loop of Llama-3.1-8B on one H100, unless told otherwise."""

import csv
from collections.abc import Sequence
from pathlib import Path

from stack.simulator.validation.rows import NUMBERS, TEXTS, MeasuredRow

COLUMNS = (*TEXTS, "tp", *NUMBERS)
COLUMN_OF = {attribute: column for column, attribute in NUMBERS.items()}


def row(row_id: str = "1", **changes: object) -> MeasuredRow:
    facts: dict[str, object] = {
        "line": 2,
        "row_id": row_id,
        "dataset": "made",
        "source": "made",
        "model": "meta-llama/Llama-3.1-8B",
        "precision": "bf16",
        "gpu": "h100_sxm",
        "tensor_parallel": 1,
        "engine": "vllm 0.18.0",
        "load": "closed",
        "prefix_caching": "off",
        "quality": "A",
        "note": "",
        "concurrency": 8.0,
        "prompt_tokens": 512.0,
        "output_tokens": 128.0,
        "ttft_mean_ms": 40.0,
        "tpot_mean_ms": 8.0,
    }
    return MeasuredRow(**{**facts, **changes})


def open_row(row_id: str = "1", **changes: object) -> MeasuredRow:
    facts = {
        "load": "open-constant",
        "request_rate_per_s": 4.0,
        "concurrency": None,
        "ttft_p50_ms": 30.0,
        "ttft_p99_ms": 60.0,
        "tpot_p50_ms": 8.0,
        "e2e_p50_ms": 1000.0,
    }
    return row(row_id, **{**facts, **changes})


def written(path: Path, rows: Sequence[MeasuredRow]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        for one in rows:
            numbers = {column: getattr(one, attribute) for attribute, column in COLUMN_OF.items()}
            shown = {name: "" if value is None else repr(value) for name, value in numbers.items()}
            writer.writerow({**{name: getattr(one, name) for name in TEXTS}, "tp": one.tensor_parallel, **shown})
    return path
