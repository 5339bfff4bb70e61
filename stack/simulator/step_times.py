"""Step-time tables of one model on one GPU type, read from the package."""

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from stack.errors import InputError
from stack.simulator.engine.layout import Floats, Tables


@dataclass(frozen=True)
class HostOverhead:
    """Time per engine step that kernels do not explain, by engine generation.

    Attributes:
        step_ms: constant part.
        sequence_ms: per running request.
        frontend_s: HTTP, tokenisation and detokenisation; added to TTFT and E2E.
        async_lag: whether step k+1 is scheduled while step k runs, so that an arrival during k starts in k+2.
    """

    step_ms: float
    sequence_ms: float
    frontend_s: float
    async_lag: bool


PROFILES = {
    "vllm-0.12": HostOverhead(1.9, 0.041, 0.008, False),
    "vllm-0.18": HostOverhead(0.13, 0.0164, 0.008, True),
}
"""Step figures fitted on measured rows of these generations; the frontend's on open-loop runs with async scheduling."""


@cache
def tables_for(model: str, gpu: str, tensor_parallel: int) -> Tables:
    """The tables of a model on a GPU type.

    Raises:
        InputError: none are shipped for this combination; the text lists those that are.
    """
    name = f"{model}_{gpu}_tp{tensor_parallel}.json"
    folder = files("stack.simulator") / "silicon"
    known = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".json"))
    if name not in known:
        combinations = ", ".join(entry.removesuffix(".json") for entry in known)
        raise InputError(f"no step times for {name.removesuffix('.json')}; there are {combinations}")
    return _tables(json.loads((folder / name).read_text()))


def _tables(data: dict[str, Any]) -> Tables:
    def reals(key: str) -> Floats:
        return np.array(data[key], dtype=np.float64)

    return Tables(
        tokens=reals("tokens"),
        context_ms=reals("context_ms"),
        batches=reals("batches"),
        generation_ms=reals("generation_ms"),
        contexts=reals("contexts"),
        decode_attention_ms=reals("decode_attention_ms"),
        chunks=reals("chunks"),
        cached=reals("cached"),
        prefill_attention_ms=reals("prefill_attention_ms"),
    )
