"""A model's file as text: one line per row of numbers, so that a change of tables can be read as one."""

import json
from typing import Any


def as_text(file: dict[str, Any]) -> str:
    """JSON with a line per field, and per row of a table."""
    return _object(file, depth=3) + "\n"


def _object(fields: dict[str, Any], depth: int) -> str:
    return (
        "{\n" + ",\n".join(f"{json.dumps(key)}: {_value(key, value, depth)}" for key, value in fields.items()) + "\n}"
    )


def _value(key: str, value: Any, depth: int) -> str:  # noqa: ANN401
    if isinstance(value, dict) and depth > 1 and key not in ("config", "provenance", "sources"):
        return _object(value, depth - 1) if value else "{}"
    if isinstance(value, list) and value and isinstance(value[0], list):
        return "[\n" + ",\n".join(_compact(row) for row in value) + "\n]"
    return _compact(value)


def _compact(value: Any) -> str:  # noqa: ANN401
    return json.dumps(value, separators=(",", ":"))
