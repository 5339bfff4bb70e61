"""Results written to a JSON file that the user named."""

import json
from collections.abc import Mapping
from pathlib import Path

from stack.errors import InputError
from stack.redaction import redacted_tree


def check_writable(path: Path) -> None:
    """Refuse a file that cannot be written before the work is done.

    Raises:
        InputError: its folder does not exist, or it cannot be opened.
    """
    folder = path.resolve().parent
    if not folder.is_dir():
        raise InputError(f"--json {path}: the folder {folder} does not exist")
    try:
        with path.open("a", encoding="utf-8"):
            pass
    except OSError as error:
        raise InputError(f"--json {path}: cannot be written: {error.strerror}") from error


def write_json(path: Path, result: Mapping[str, object]) -> None:
    """Write a documented JSON object.

    Raises:
        InputError: the file cannot be written.
    """
    try:
        path.write_text(json.dumps(redacted_tree(result), indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise InputError(f"--json {path}: cannot be written: {error.strerror}") from error
