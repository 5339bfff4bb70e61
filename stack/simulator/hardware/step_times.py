"""Step-time tables of one model on one GPU type, read from the model's file."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from stack.errors import InputError
from stack.simulator.engine.layout import Floats, Tables
from stack.simulator.hardware.gpu import model_named
from stack.simulator.hardware.model_files import model_file, table_facts, table_key

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
    key = next((key for key in keys if key in file["tables"]), None)
    if key is None:
        raise InputError(f"no step times for {model} as {keys[0]}; there are {', '.join(sorted(file['tables']))}")
    table = file["tables"][key]
    try:
        return _tables({**file, **table, **file["attention"][table["attention"]]})
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"the file of {model} is damaged at {key}: {error}; add the model anew") from error


def usual_precision(model: str) -> str:
    """The precision that a model is published in, or the first one there are tables for.

    Raises:
        InputError: no such model.
    """
    held = [table_facts(key)[2] for key in model_file(model)["tables"]]
    published = model_named(model).precision
    return published if published in held or not held else held[0]


def _tables(data: Mapping[str, Any]) -> Tables:
    """The arrays of a file; decode attention, kept at fewer batches than the rest, is filled in between them."""

    def reals(key: str) -> Floats:
        return np.array(data[key], dtype=np.float64)

    batches, measured = reals("batches"), reals("attention_batches")
    columns = [np.interp(batches, measured, column) for column in reals("decode_attention_ms").T]
    filled = {"decode_attention_ms": np.ascontiguousarray(np.transpose(columns))}
    return Tables(**{name: filled[name] if name in filled else reals(name) for name in Tables._fields})
