"""Writes what HAProxy reads at its start: configuration, maps and Lua."""

from importlib.resources import files
from pathlib import Path

from stack.errors import InputError
from stack.local.configuration import LocalStack
from stack.local.gateway import layout
from stack.local.gateway.haproxy_config import config_text
from stack.local.gateway.values import Start, whole
from stack.snapshot import FLEET

NO_SERVER_STATE = "1\n"
"""A state file of version 1 that knows no server."""
_LANES = ("interactive_short", "interactive_long", "batch_short", "batch_long")
_RANKS = {
    "fcfs": (0, 0, 0, 0),
    "class": (0, 0, 1, 1),
    "short_first": (0, 1, 0, 1),
    "class_short_first": (0, 1, 2, 3),
}
"""Rank of each lane; the lowest leaves the queue first."""


def write_files(configuration: LocalStack, start: Start | None = None) -> Path:
    """Write everything into the gateway's folder and return it. What an earlier run left of server states is dropped.

    Raises:
        InputError: the folder cannot be written.
    """
    folder = layout.folder_of(configuration)
    texts = texts_of(configuration, start or Start())
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{folder}: the gateway's files cannot be written: {error.strerror}") from error
    return folder


def texts_of(configuration: LocalStack, start: Start) -> dict[str, str]:
    """{file name: text}."""
    full = whole(start, configuration)
    numbers = {name: float(full.values[name][FLEET]) for name in layout.NUMBER_SETTINGS} | dict(full.numbers)
    choices = {name: str(full.values[name][FLEET]) for name in layout.CHOICE_SETTINGS}
    return {
        layout.CONFIG: config_text(configuration, full.values),
        layout.LUA: (files("stack.local.gateway") / layout.LUA).read_text(encoding="utf-8"),
        layout.CHOICES: _map(choices),
        layout.NUMBERS: _map({name: number_text(value) for name, value in numbers.items()}),
        layout.RANKS: _map(
            {
                f"{policy}/{lane}": str(rank)
                for policy, ranks in _RANKS.items()
                for lane, rank in zip(_LANES, ranks, strict=True)
            }
        ),
        layout.SERVER_STATE: NO_SERVER_STATE,
    }


def number_text(value: float) -> str:
    """A number as it stands in the map: whole ones without a point, for HAProxy's integer rules."""
    return str(int(value)) if value == int(value) else repr(value)


def _map(entries: dict[str, str]) -> str:
    return "".join(f"{key} {value}\n" for key, value in entries.items())
