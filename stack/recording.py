"""The samples and settings of an incident folder: what a reader may see of it, so nothing of its truth."""

import gzip
import json
import math
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from stack.catalogue import setting_named
from stack.document import INCIDENT_FILE, document
from stack.errors import InputError, UnknownSettingError
from stack.exposition import render
from stack.metric_line import MetricLine, lines_in
from stack.outside_text import name_of
from stack.problem import first_problem
from stack.reading import Reading
from stack.samples import readings_of
from stack.setting import Value

SAMPLE_FILES = ("samples.jsonl", "samples.jsonl.gz")
SETTINGS_FILE = "settings.json"
Settings: TypeAlias = Mapping[str, Mapping[str, Value]]


class Sample(BaseModel):
    """One line of samples.jsonl.

    Attributes:
        time_s: when it was scraped, seconds since the epoch.
        target: the replica, or `gateway` for an exporter that speaks of all servers.
        metric: the name on the wire, such as `vllm:num_requests_running`.
        value: None where the source said NaN.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    time_s: Annotated[float, Field(allow_inf_nan=False)]
    target: Annotated[str, Field(min_length=1)]
    metric: Annotated[str, Field(min_length=1)]
    labels: dict[str, str] = Field(default_factory=dict)
    value: float | None


@dataclass(frozen=True)
class Recording:
    """What was recorded.

    Attributes:
        readings: in time order.
        settings: value in force per setting and target.
        window_s: length of the window at the end to judge; None for all of it.
    """

    readings: tuple[Reading, ...]
    settings: Settings = field(default_factory=dict)
    window_s: float | None = None


def read_recording(folder: Path) -> Recording:
    """The recording in `folder`. Impossible values are left out with a warning, as on the live stack.

    Raises:
        InputError: a file is absent or a line is wrong; the text names file and line.
    """
    return Recording(
        readings=tuple(_readings(_samples_file(folder))),
        settings=_read_settings(folder / SETTINGS_FILE),
        window_s=_window_s(folder / INCIDENT_FILE),
    )


class _Window(BaseModel):
    window_s: Annotated[float, Field(gt=0, allow_inf_nan=False, strict=True)] | None = None


def _window_s(path: Path) -> float | None:
    """The one field that a reader may know of what else tells the truth."""
    try:
        return _Window.model_validate(document(path)).window_s
    except ValidationError as error:
        raise InputError(f"{path}: {first_problem(error)}") from error


def write_recording(folder: Path, readings: Iterable[Reading], settings: Settings) -> None:
    """Write samples.jsonl.gz and settings.json into `folder`, which is made if need be. Readings must carry times."""
    folder.mkdir(parents=True, exist_ok=True)
    with gzip.open(folder / SAMPLE_FILES[1], "wt", encoding="utf-8") as out:
        for reading in sorted(readings, key=_time_s):
            for sample in _samples_of(reading):
                out.write(sample.model_dump_json() + "\n")
    (folder / SETTINGS_FILE).write_text(json.dumps(settings, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def _time_s(reading: Reading) -> float:
    if reading.time_s is None:
        raise InputError(f"{reading.replica}: a reading without time cannot be recorded")
    return reading.time_s


def _samples_of(reading: Reading) -> Iterator[Sample]:
    for line in lines_in(render([reading]), reading.replica):
        labels = {name: text for name, text in line.labels.items() if name != "instance"}
        value = line.value if math.isfinite(line.value) else None
        yield Sample(time_s=_time_s(reading), target=reading.replica, metric=line.name, labels=labels, value=value)


def _samples_file(folder: Path) -> Path:
    found = [folder / name for name in SAMPLE_FILES if (folder / name).is_file()]
    if len(found) != 1:
        raise InputError(f"{folder}: expected one of {' and '.join(SAMPLE_FILES)}, found {len(found)} of them")
    return found[0]


def _readings(path: Path) -> Iterator[Reading]:
    scrapes: dict[tuple[float, str], list[MetricLine]] = {}
    places: dict[tuple[float, str, str, frozenset[tuple[str, str]]], int] = {}
    newest_s = -math.inf
    for number, sample in _samples(path):
        place = f"{path}, line {number}"
        if sample.time_s < newest_s:
            raise InputError(f"{place}: time_s {sample.time_s:g} after {newest_s:g}; expected lines in time order")
        newest_s = sample.time_s
        key = (sample.time_s, sample.target, sample.metric, frozenset(sample.labels.items()))
        if key in places:
            raise InputError(f"{place}: the same sample stands in line {places[key]}")
        places[key] = number
        value = math.nan if sample.value is None else sample.value
        scrapes.setdefault((sample.time_s, sample.target), []).append(
            MetricLine(sample.metric, sample.labels, value, place, number)
        )
    if not scrapes:
        raise InputError(f"{path}: no sample")
    for (time_s, target), lines in scrapes.items():
        yield from readings_of(lines, time_s, target, str(path))


def _samples(path: Path) -> Iterator[tuple[int, Sample]]:
    number = 0
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    yield number, Sample.model_validate_json(line)
    except ValidationError as error:
        raise InputError(f"{path}, line {number}: {first_problem(error)}") from error
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path}, after line {number}: cannot be read: {error}") from error


_SETTINGS: TypeAdapter[dict[str, dict[str, float | str]]] = TypeAdapter(dict[str, dict[str, float | str]])


def _read_settings(path: Path) -> Settings:
    if not path.is_file():
        return {}
    try:
        settings = _SETTINGS.validate_json(path.read_bytes())
    except ValidationError as error:
        raise InputError(f"{path}: {first_problem(error)}") from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    for name, values in settings.items():
        for target, value in values.items():
            _check_setting(path, name, target, value)
    return {name: {name_of(target): value for target, value in values.items()} for name, values in settings.items()}


def _check_setting(path: Path, name: str, target: str, value: Value) -> None:
    try:
        problem = setting_named(name).problem_with(value)
    except UnknownSettingError as error:
        raise InputError(f"{path}: {error}") from error
    if problem is not None:
        raise InputError(f"{path}: {target}: {problem}")
