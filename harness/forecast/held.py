"""Settings in force, and the limits that engines were started with, which none of them goes beyond."""

from harness.forecast.belief import Held
from stack.setting import Value
from stack.simulator.hardware.measured import MAX_SEQUENCES, MAX_TOKENS, told
from stack.snapshot import Snapshot

STARTED = {"running_request_cap": MAX_SEQUENCES, "tokens_per_step": MAX_TOKENS}
"""Keys of the configuration by which engines tell what they were started with, by the settings they limit."""


def started_of(snapshot: Snapshot) -> Held:
    """Limits that the engines say they were started with."""
    return {setting: _told(snapshot, key) for setting, key in STARTED.items()}


def _told(snapshot: Snapshot, key: str) -> dict[str, Value]:
    known = {name: told(snapshot.configuration.get(name, {}), key) for name in snapshot.replicas}
    return {name: value for name, value in known.items() if value is not None}


def held_of(snapshot: Snapshot) -> Held:
    """The settings in force; where an engine's limit was not read, the one it was started with."""
    started = started_of(snapshot)
    return {
        name: {**started.get(name, {}), **snapshot.settings.get(name, {})}
        for name in dict.fromkeys([*snapshot.settings, *(name for name, values in started.items() if values)])
    }
