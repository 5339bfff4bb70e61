"""A window of a live stack, kept as an incident folder."""

import math
import os
import platform
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeAlias

import httpx

from stack.catalogue import setting_named
from stack.clock import Clock
from stack.document import INCIDENT_FILE
from stack.errors import InputError, UnreachableError
from stack.incident import Incident, Truth, write_incident
from stack.local.configuration import LocalStack
from stack.local.reading.choice import target_of
from stack.local.reading.device import DeviceProbe
from stack.local.reading.engine_facts import EngineFacts
from stack.local.reading.history import NoPast, Prometheus
from stack.local.reading.nvml import Nvml
from stack.local.reading.scraping import Scraping
from stack.local.reading.values import ValuesInForce
from stack.reading import GATEWAY, Reading, View
from stack.recording import write_recording
from stack.setting import Value
from stack.window import snapshot_of

STEP_MIN_S, STEP_MAX_S = 5.0, 15.0
"""A window of a minute must hold four scrapes."""
SCRAPES_IN_ALL = 170
"""Of all replicas together: about 300 kB, as a scrape of vLLM 0.32 and its part of the gateway's take 1.7 kB packed."""
TITLE, QUESTION = "Recorded, not yet named", "what is wrong, if anything?"
_CHECK_S = 0.5
Settings: TypeAlias = Mapping[str, Mapping[str, Value]]


def usual_step_s(length_s: float, replicas: int) -> float:
    """Time between two scrapes with which a recording stays under about 300 kB, where that leaves enough of them."""
    return min(STEP_MAX_S, max(STEP_MIN_S, math.ceil(length_s * replicas / SCRAPES_IN_ALL)))


def live_readings(
    configuration: LocalStack, clock: Clock, *, length_s: float, step_s: float, go_on: Callable[[float], bool]
) -> list[Reading]:
    """Scrape for `length_s` seconds; all readings in time order.

    Args:
        go_on: asked about twice a second, with the seconds that have passed; false ends the recording early.

    Raises:
        UnreachableError: nothing answered.
    """
    scraping = Scraping(configuration, clock, interval_s=step_s, kept_s=length_s + step_s)
    device = DeviceProbe(configuration, clock)
    device.start()
    scraping.start()
    start_s = clock.now_s()
    try:
        scraping.wait_for_first()
        _raise_if_silent(scraping.readings(start_s, clock.now_s()), scraping.problems)
        while clock.now_s() - start_s < length_s and go_on(clock.now_s() - start_s):
            clock.sleep(_CHECK_S)
    finally:
        scraping.stop()
        device.stop()
    return _ours(device.added_to(scraping.readings(start_s, clock.now_s())), configuration)


def past_readings(configuration: LocalStack, now_s: float, *, length_s: float, step_s: float) -> list[Reading]:
    """The last `length_s` seconds as Prometheus has them, no denser than `step_s`.

    Raises:
        InputError: no Prometheus is configured.
        UnreachableError: it could not be used, or has nothing of that time.
    """
    prometheus = Prometheus(configuration)
    past = prometheus.between(now_s - length_s, now_s)
    prometheus.close()
    if isinstance(past, NoPast):
        raise UnreachableError(past.reason)
    if not past.readings:
        raise UnreachableError(f"Prometheus has no sample of this stack in the last {length_s:g} s")
    return _thinned(_ours(past.readings, configuration), step_s)


def settings_in_force(configuration: LocalStack, readings: Sequence[Reading]) -> Settings:
    """Value in force per setting and target, as gateway and engines tell them now; what nobody tells is left out.

    A gateway that is not ours tells weights, limits and states in its exporter only.
    """
    told = {name: dict(values) for name, values in snapshot_of(readings, window_s=None).settings.items()}
    for reading in readings:
        state = reading.configuration.get("gateway_state")
        if state is not None and reading.replica != GATEWAY:
            told.setdefault("replica_state", {})[reading.replica] = "drain" if state == "DRAIN" else "ready"
    with closing(ValuesInForce(configuration)) as in_force:
        for name, held in in_force.now().settings.items():
            told.setdefault(name, {}).update(held)
    return {name: sound for name, held in told.items() if (sound := _sound(name, held))}


def stack_facts(configuration: LocalStack, readings: Sequence[Reading], step_s: float) -> dict[str, int | float | str]:
    """What an incident says of the stack beside its samples."""
    with httpx.Client(trust_env=False) as client:
        pages = [EngineFacts(configuration, one, client).version() for one in configuration.replicas]
    versions = {str(page.document["version"]) for page in pages if "version" in page.document}
    gateways = {one.replica for one in readings if one.view is View.GATEWAY}
    return {
        "model": configuration.engine.model,
        "engine": f"vLLM {', '.join(sorted(versions)) or 'of unknown version'}",
        "gateway": "HAProxy" if gateways else "not recorded",
        "hardware": hardware(),
        "replicas": len(configuration.replicas),
        "scrape_step_s": step_s,
    }


def hardware() -> str:
    """The GPUs of this machine, or its processor and cores."""
    nvml = Nvml()
    names = nvml.names()
    nvml.close()
    if names:
        return ", ".join(f"{names.count(name)} x {name}" for name in dict.fromkeys(names))
    return f"{_processor()}, {os.cpu_count()} cores, no GPU"


def keep(folder: Path, incident: Incident, readings: Sequence[Reading], settings: Settings) -> None:
    """Write the incident folder.

    Raises:
        InputError: it cannot be written.
    """
    try:
        write_recording(folder, readings, settings)
        write_incident(folder, incident)
    except OSError as error:
        raise InputError(f"{folder}: cannot be written: {error.strerror}") from error


def incident_of(
    configuration: LocalStack, facts: Mapping[str, int | float | str], now_s: float, title: str, question: str
) -> Incident:
    """The case without its truth, which is filled in by whoever finds it."""
    day = datetime.fromtimestamp(now_s, tz=UTC).date().isoformat()
    return Incident(
        title=title,
        provenance=f"recorded on {day} from the stack {configuration.name}; figures only, no text of any request",
        question=question,
        stack=dict(facts),
        truth=Truth(),
    )


def check_free(folder: Path) -> None:
    """Refuse a folder that cannot take a new incident, before time is spent on recording.

    Raises:
        InputError: it holds one already, is a file, or cannot be made.
    """
    if (folder / INCIDENT_FILE).exists():
        raise InputError(f"{folder}: holds {INCIDENT_FILE} already; give a new folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot be made: {error.strerror}") from error


def _raise_if_silent(readings: Sequence[Reading], problems: Mapping[str, str]) -> None:
    if not readings:
        raise UnreachableError(f"nothing of the stack answers: {'; '.join(problems.values())}")


def _ours(readings: Sequence[Reading], configuration: LocalStack) -> list[Reading]:
    known = {*configuration.names, GATEWAY}
    ours = [
        one for one in readings if target_of(one) in known and (one.view is not View.GATEWAY or one.replica in known)
    ]
    return sorted(ours, key=lambda one: one.time_s or 0.0)


def _thinned(readings: Sequence[Reading], step_s: float) -> list[Reading]:
    """Per target a scrape, then none until nearly `step_s` later."""
    kept: list[Reading] = []
    last_s: dict[str, float] = {}
    for reading in readings:
        time_s, target = reading.time_s or 0.0, target_of(reading)
        if time_s == last_s.get(target) or time_s - last_s.get(target, -step_s) >= 0.9 * step_s:
            last_s[target] = time_s
            kept.append(reading)
    return kept


def _sound(name: str, values: Mapping[str, Value]) -> dict[str, Value]:
    """Only what the format of a recording accepts."""
    setting = setting_named(name)
    return {target: value for target, value in values.items() if setting.problem_with(value) is None}


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())
