"""Traffic from public trace formats: Azure CSV and Mooncake JSON lines."""

import csv
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from stack.errors import InputError
from stack.simulator.load.traffic import CHUNK_TOKENS, Traffic, plain

AZURE_COLUMNS = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")
MOST_TOKENS = 2_000_000
"""A longer prompt or answer is taken for a mistake in the file."""


def read_traffic(path: Path) -> Traffic:
    """The traffic in a file: `.csv` as in the Azure LLM inference traces, `.jsonl` as in the Mooncake traces.

    Raises:
        InputError: the file cannot be read or has another shape; the text names file, line, expected and found.
    """
    if path.suffix == ".csv":
        return read_azure(path)
    if path.suffix == ".jsonl":
        return read_mooncake(path)
    raise InputError(f"{path}: expected a .csv (Azure) or .jsonl (Mooncake) file")


def read_azure(path: Path) -> Traffic:
    """Columns TIMESTAMP, ContextTokens, GeneratedTokens; no sessions and no prefixes.

    Raises:
        InputError: as for `read_traffic`.
    """
    rows = _csv_rows(path)
    header = next(rows, (1, []))[1]
    missing = [column for column in AZURE_COLUMNS if column not in header]
    if missing:
        raise InputError(f"{path}, line 1: expected the columns {', '.join(AZURE_COLUMNS)}, found {_shown(header)}")
    place = [header.index(column) for column in AZURE_COLUMNS]
    times: list[float] = []
    prompts, outputs = [], []
    for line, row in rows:
        where = f"{path}, line {line}"
        if len(row) != len(header):
            raise InputError(f"{where}: expected {len(header)} fields, found {len(row)}")
        time_s = _timestamp(row[place[0]], where)
        _in_order(times, time_s, where)
        times.append(time_s)
        prompts.append(_tokens(row[place[1]], AZURE_COLUMNS[1], where))
        outputs.append(_tokens(row[place[2]], AZURE_COLUMNS[2], where))
    if not times:
        raise InputError(f"{path}: expected at least one request after the header, found none")
    return plain(np.array(times) - times[0], np.array(prompts), np.array(outputs))


def read_mooncake(path: Path) -> Traffic:
    """Lines with timestamp (ms), input_length, output_length and hash_ids of 512-token blocks.

    A block that the prompt does not fill is not shared. The second block stands for the session, since the first is
    often a system prompt that all have.

    Raises:
        InputError: as for `read_traffic`.
    """
    times: list[float] = []
    prompts, outputs, chains = [], [], []
    for line, text in enumerate(_text(path).splitlines(), start=1):
        if not text.strip():
            continue
        where = f"{path}, line {line}"
        record = _record(text, where)
        time_s = _milliseconds(record, where) / 1e3
        _in_order(times, time_s, where)
        times.append(time_s)
        prompts.append(_tokens(record.get("input_length"), "input_length", where))
        outputs.append(_tokens(record.get("output_length"), "output_length", where))
        chains.append(_hashes(record, prompts[-1], where))
    if not times:
        raise InputError(f"{path}: expected at least one request, found none")
    return _chained(times, prompts, outputs, chains)


def _chained(times: list[float], prompts: list[int], outputs: list[int], chains: list[list[int]]) -> Traffic:
    numbers: dict[int, int] = {}
    flat = [numbers.setdefault(block, len(numbers)) for chain in chains for block in chain]
    lengths = np.array([len(chain) for chain in chains], dtype=np.int64)
    starts = np.cumsum(lengths) - lengths
    sessions = [flat[start + min(1, n - 1)] if n else -1 for start, n in zip(starts, lengths, strict=True)]
    return Traffic(
        arrival_s=np.array(times) - times[0],
        prompt_tokens=np.maximum(1, np.array(prompts, dtype=np.int64)),
        output_tokens=np.maximum(1, np.array(outputs, dtype=np.int64)),
        is_batch=np.zeros(len(times), dtype=np.bool_),
        session=np.array(sessions, dtype=np.int64),
        chain_start=starts,
        chain_length=lengths,
        chains=np.array(flat, dtype=np.int64),
    )


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: expected UTF-8 text, found other bytes at offset {error.start}") from error


def _csv_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(_text(path).splitlines())
    try:
        for row in reader:
            if row:
                yield reader.line_num, row
    except csv.Error as error:
        raise InputError(f"{path}, line {reader.line_num}: not a CSV line ({error})") from error


def _timestamp(text: str, where: str) -> float:
    """Seconds; these traces have seven digits after the point, which ISO parsers refuse."""
    head, _, fraction = text.strip().partition(".")
    try:
        moment = datetime.fromisoformat(head)
        zone = moment.tzinfo or UTC
        return moment.replace(tzinfo=zone).timestamp() + (float(f"0.{fraction}") if fraction else 0.0)
    except ValueError as error:
        raise InputError(f"{where}: TIMESTAMP must look like 2023-11-16 18:15:46.68, not {_shown(text)}") from error


def _tokens(value: object, name: str, where: str) -> int:
    try:
        if isinstance(value, bool) or not isinstance(value, int | str):
            raise ValueError
        tokens = int(value)
    except ValueError as error:
        raise InputError(f"{where}: {name} must be a whole number of tokens, not {_shown(value)}") from error
    if not 0 <= tokens <= MOST_TOKENS:
        raise InputError(f"{where}: {name} must lie in 0 to {MOST_TOKENS} tokens, not {tokens}")
    return tokens


def _record(text: str, where: str) -> dict[str, Any]:
    try:
        record = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}: not JSON ({error})") from error
    if not isinstance(record, dict):
        raise InputError(f"{where}: expected a JSON object, found {_shown(record)}")
    return record


def _milliseconds(record: dict[str, Any], where: str) -> float:
    value = record.get("timestamp")
    if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value) or value < 0:
        raise InputError(f"{where}: timestamp must be milliseconds of at least 0, not {_shown(value)}")
    return float(value)


def _hashes(record: dict[str, Any], prompt: int, where: str) -> list[int]:
    found = record.get("hash_ids", [])
    if not isinstance(found, list) or any(isinstance(one, bool) or not isinstance(one, int) for one in found):
        raise InputError(f"{where}: hash_ids must be a list of whole numbers, not {_shown(found)}")
    return found[: prompt // CHUNK_TOKENS]


def _in_order(times: list[float], time_s: float, where: str) -> None:
    if times and time_s < times[-1]:
        raise InputError(
            f"{where}: times must not go back, but this request is {times[-1] - time_s:g} s before the last"
        )


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
