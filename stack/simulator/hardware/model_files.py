"""Where models and their step-time tables are kept: the package's own folder, then the user's.

One JSON file per model. Its fields: `model`, `repository`, `config` (the fields of config.json that dimensions follow
from), `provenance`, the grids, `tables` (by GPU, tensor-parallel size and precision) and `attention` (tables of
attention, shared by precisions with the same KV values).
"""

import json
import os
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from stack.errors import InputError

SHIPPED = Path(__file__).parent / "tables"
FOLDER_VARIABLE = "FLASHVECTOR_MODELS_PATH"
NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")

ModelFile = Mapping[str, Any]
_FIELDS = {"model": str, "repository": str, "config": dict, "provenance": dict, "tables": dict, "attention": dict}


def user_folder() -> Path:
    """The user's own models: FLASHVECTOR_MODELS_PATH, else `flashvector/models` in the user's data folder."""
    if given := os.environ.get(FOLDER_VARIABLE):
        return Path(given)
    data = os.environ.get("XDG_DATA_HOME")
    return (Path(data) if data else Path.home() / ".local" / "share") / "flashvector" / "models"


def model_names() -> tuple[str, ...]:
    """All models there are, shipped ones first."""
    found = dict.fromkeys(path.stem for folder in (SHIPPED, user_folder()) for path in sorted(folder.glob("*.json")))
    return tuple(found)


def is_shipped(name: str) -> bool:
    """Whether the model comes with the package."""
    return bool(NAME.fullmatch(name)) and (SHIPPED / f"{name}.json").is_file()


def model_file(name: str) -> ModelFile:
    """The content of a model's file; a shipped model comes before a user's of the same name.

    Raises:
        InputError: there is none, the text lists those that exist; or it cannot be read.
    """
    if NAME.fullmatch(name):
        for folder in (SHIPPED, user_folder()):
            path = folder / f"{name}.json"
            if path.is_file():
                return _parsed(path, path.stat().st_mtime_ns)
    raise InputError(f"no model {name!r}; known models are {', '.join(model_names())}")


def table_key(gpu: str, tensor_parallel: int, precision: str) -> str:
    """Name of a table within a model's file."""
    return f"{gpu}_tp{tensor_parallel}_{precision}"


def table_facts(key: str) -> tuple[str, int, str]:
    """GPU, tensor-parallel size and precision that a table's name stands for."""
    gpu, tensor_parallel, precision = key.split("_", 2)
    return gpu, int(tensor_parallel.removeprefix("tp")), precision


@lru_cache(maxsize=256)
def _parsed(path: Path, _modified_ns: int) -> ModelFile:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from error
    missing = [
        name for name, kind in _FIELDS.items() if not isinstance(content, dict) or type(content.get(name)) is not kind
    ]
    if missing:
        raise InputError(f"{path}: not a model's file: no usable {', '.join(missing)}")
    found: ModelFile = content
    return found
