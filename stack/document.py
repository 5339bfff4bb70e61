"""TOML documents of an incident folder: read, written, and what is wrong with them in one line."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from stack.errors import InputError
from stack.redaction import SECRET_NAME, redacted

INCIDENT_FILE = "incident.toml"
FOUND_MAX = 60
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


def first_problem(error: ValidationError) -> str:
    """The first of the problems pydantic found, on one line, with its field and the plain value that was found."""
    problem = error.errors()[0]
    field = ".".join(str(part) for part in problem["loc"])
    found = _found(problem["input"]) if "found" not in problem["msg"] and not SECRET_NAME.search(field) else ""
    return f"{field}: {problem['msg']}{found}" if field else str(problem["msg"])


def _found(value: object) -> str:
    if not isinstance(value, (str, int, float)):
        return ""
    text = redacted(repr(value))
    return f", found {text if len(text) <= FOUND_MAX else text[: FOUND_MAX - 3] + '...'}"


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
