"""From the words of a measured row to the simulator's names of model, GPU and precision."""

import re
from functools import cache

from stack.errors import InputError
from stack.simulator.hardware.gpu import GPUS, known_models
from stack.simulator.validation.rows import MeasuredRow

_TAIL = re.compile(r"-(hf|instruct|chat|fp8|v0\.\d|\d{4})$")
"""Endings that change neither a model's dimensions nor its kernels (the precision is a column of its own)."""
_SIXTEEN_BITS = ("bf16", "fp16", "float16", "bfloat16")
_FOUR_BITS = ("mxfp4", "int4")


def model_of_row(row: MeasuredRow) -> str:
    """The simulator's name of the row's model.

    Raises:
        InputError: there are no step times for it.
    """
    name = _by_core().get(_core(row.model))
    if name is None:
        raise InputError(f"no step times for model {row.model}")
    return name


def gpu_of_row(row: MeasuredRow) -> str:
    """The simulator's name of the row's GPU type.

    Raises:
        InputError: there are no step times on it.
    """
    wanted = row.gpu.lower()
    for name, gpu in GPUS.items():
        if wanted in (name, gpu.silicon_name):
            return name
    raise InputError(f"no step times on GPU {row.gpu}")


def precision_of_row(row: MeasuredRow) -> str:
    """The simulator's name of the precision the row was served in; what its file only assumes gives way to facts.

    Raises:
        InputError: its words mean none, or one that the model is not published in.
    """
    words, published = row.precision.lower(), known_models()[model_of_row(row)].precision
    if "assumed" in words:
        return published
    if any(name in words for name in _SIXTEEN_BITS):
        return "bf16"
    if "fp8" in words or (words == "as served" and row.model.lower().endswith("-fp8")):
        return "fp8"
    if words == "as served":
        return published
    if ("fp4" in words or "int4" in words) and published in _FOUR_BITS:
        return published
    raise InputError(f"no step times in precision {row.precision!r} for {row.model}")


@cache
def _by_core() -> dict[str, str]:
    return {_core(model.repository): name for name, model in known_models().items()}


def _core(repository: str) -> str:
    name = repository.rsplit("/", 1)[-1].lower().removeprefix("meta-")
    while (shorter := _TAIL.sub("", name)) != name:
        name = shorter
    return name
