"""A user's own model: from its config.json to a file with tables in the user's folder."""

import json
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from stack.errors import InputError
from stack.simulator.hardware.model import model_of
from stack.simulator.hardware.model_files import NAME, is_shipped, model_file, model_names, user_folder
from stack.simulator.silicon.distil import add_table, empty_file
from stack.simulator.silicon.text import as_text


def add_model(config_path: Path, name: str | None, gpu: str, tensor_parallel: int, precision: str | None) -> Path:
    """Make the tables of one GPU type, tensor-parallel size and precision, and keep them beside those there are.

    Args:
        config_path: a Hugging Face config.json.
        name: what the model will be called; None takes the name of the config's folder.
        precision: None takes the one the config describes.

    Returns:
        The file that was written; nothing is written when an error is raised.

    Raises:
        InputError: the config, name, GPU or precision is unusable, the model does not fit, or nothing was measured.
        LibraryAbsentError: the extra `silicon` is not installed.
    """
    config = _read(config_path)
    called = _checked(name or default_name(config_path))
    try:
        file = empty_file(called, _repository(config, called), config)
        if called in model_names():
            file = _same(called, file)
        taken = precision or model_of(file["config"], file["repository"]).precision
        add_table(file, config, gpu, tensor_parallel, taken)
    except InputError as error:
        raise InputError(f"{config_path}: {error}") from error
    path = user_folder() / f"{called}.json"
    _write(path, as_text(file))
    return path


def default_name(config_path: Path) -> str:
    """The name of the config's folder, or its own if it is not called config.json; in lower case."""
    path = config_path.resolve()
    return (path.parent.name if path.name == "config.json" else path.stem).lower()


def _read(path: Path) -> dict[str, Any]:
    """The config; with the quantization that some publishers keep in a file of its own beside it."""
    config = _object(path)
    beside = path.parent / "hf_quant_config.json"
    if "quantization_config" not in config and beside.is_file():
        given = _object(beside).get("quantization")
        config["quantization_config"] = {"quant_method": "modelopt", **(given if isinstance(given, dict) else {})}
    return config


def _object(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
    except (json.JSONDecodeError, RecursionError) as error:
        raise InputError(f"{path}: not valid JSON: {error}") from error
    if not isinstance(found, dict):
        raise InputError(f"{path}: expected a JSON object, found {type(found).__name__}")
    return found


def _checked(name: str) -> str:
    if not NAME.fullmatch(name):
        raise InputError(f"--name: expected letters, digits, dots and dashes in lower case, found {name!r}")
    if is_shipped(name):
        raise InputError(f"--name: {name} is the name of a model that is shipped; choose another")
    return name


def _repository(config: dict[str, Any], name: str) -> str:
    known = config.get("_name_or_path")
    return known if isinstance(known, str) and known else name


def _same(name: str, file: dict[str, Any]) -> dict[str, Any]:
    """A copy of the user's file of that name, to which a table may be added: one model and grid in all its tables."""
    before: dict[str, Any] = json.loads(json.dumps(model_file(name)))
    for key in file.keys() - {"tables", "attention", "provenance"}:
        if before.get(key) != file[key]:
            raise InputError(f"--name: {name} is already there with another {key}; choose another name")
    return before


def _write(path: Path, text: str) -> None:
    """All or nothing: a reader sees the file as it was or as it is to be."""
    kept: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile("w", dir=path.parent, suffix=".part", delete=False, encoding="utf-8") as part:
            kept = Path(part.name)
            part.write(text)
        kept.replace(path)
    except OSError as error:
        if kept is not None:
            with suppress(OSError):
                kept.unlink()
        raise InputError(f"{path}: cannot be written: {error.strerror}") from error
