"""Step-time tables of one model on one GPU type, read from the model's file."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from stack.errors import InputError
from stack.simulator.engine.layout import Floats, Tables
from stack.simulator.model_files import model_file, table_key

ALSO = {"fp8": ("fp8_block",)}
"""Precisions that a less exact name stands for."""


@lru_cache(maxsize=256)
def tables_for(model: str, gpu: str, tensor_parallel: int, precision: str = "bf16") -> Tables:
    """The tables of a model on a GPU type. `fp8` also finds a model that is published in FP8 blocks only.

    Raises:
        InputError: there are none for this combination; the text lists those of the model.
    """
    file = model_file(model)
    keys = [table_key(gpu, tensor_parallel, name) for name in (precision, *ALSO.get(precision, ()))]
    table = next((file["tables"][key] for key in keys if key in file["tables"]), None)
    if table is None:
        raise InputError(f"no step times for {model} as {keys[0]}; there are {', '.join(sorted(file['tables']))}")
    return _tables({**file, **table, **file["attention"][table["attention"]]})


def _tables(data: Mapping[str, Any]) -> Tables:
    def reals(key: str) -> Floats:
        return np.array(data[key], dtype=np.float64)

    return Tables(**{name: reals(name) for name in Tables._fields})
