"""TOML documents of an incident folder: read and written."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

from stack.errors import InputError

INCIDENT_FILE = "incident.toml"
BARE = re.compile(r"[A-Za-z0-9_-]+")
"""Keys that TOML takes without quotes."""


def document(path: Path) -> dict[str, Any]:
    """The TOML document in `path`.

    Raises:
        InputError: it cannot be read or is not TOML.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not TOML: {error}") from error


def toml_of(table: dict[str, Any], name: str = "") -> str:
    """`table` as TOML: plain values and lists first, then its tables. A list of tables is written inline."""
    plain = [f"{_key(key)} = {_value(value)}" for key, value in table.items() if not isinstance(value, dict)]
    tables = [
        toml_of(value, f"{name}.{_key(key)}" if name else _key(key))
        for key, value in table.items()
        if isinstance(value, dict)
    ]
    head = [f"[{name}]"] if name else []
    return "\n".join([*head, *plain, "", *tables])


def _key(name: str) -> str:
    return name if BARE.fullmatch(name) else json.dumps(name)


def _value(value: Any) -> str:  # noqa: ANN401
    """A value in TOML. Strings, numbers and booleans are written as JSON writes them, which TOML reads alike."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(key)} = {_value(part)}" for key, part in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_value(part) for part in value) + "]"
    return json.dumps(value, ensure_ascii=False)
