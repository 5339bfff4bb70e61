"""Distil step-time tables from measured silicon data; a developer's script, never needed at run time.

Run with an interpreter that has aiconfigurator-core 0.12.0 (extra `silicon`):
    python -m stack.simulator.silicon_distill
"""

import json
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from stack.simulator.hardware import GPUS, MODELS

TOKENS = sorted({*range(1, 17), *(round(2 ** (4 + i / 4)) for i in range(41))})
BATCHES = [1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 160, 192, 256, 320, 384, 512, 768, 1024]
CONTEXTS = [
    16,
    64,
    128,
    256,
    384,
    512,
    768,
    1024,
    1536,
    2048,
    3072,
    4096,
    6144,
    8192,
    12288,
    16384,
    32768,
    65536,
    131072,
]
CHUNKS = [1, 16, 64, 128, 256, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 16384]
CACHED = [0, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536]

TARGETS = (
    ("llama-3.1-8b", "h100", 1),
    ("llama-3.1-8b", "h200", 1),
    ("llama-3.1-70b", "h100", 4),
    ("llama-3.1-70b", "h200", 2),
    ("llama-3.1-70b", "h200", 4),
    ("qwen3-8b", "h100", 1),
    ("qwen3-8b", "h200", 1),
    ("qwen3-32b", "h100", 2),
)

PROVENANCE = {
    "library": "aiconfigurator-core 0.12.0",
    "licence": "Apache-2.0",
    "copyright": "NVIDIA CORPORATION & AFFILIATES",
    "measured_with": "vLLM 0.24.0",
    "precision": "bf16",
}


class _Operations(Protocol):
    """What is used of aiconfigurator_core's compiled engine."""

    def evaluate_context_ops(self, index: Sequence[int], **shape: int) -> list[tuple[Any, ...]]: ...

    def evaluate_generation_ops(self, index: Sequence[int], **shape: int) -> list[tuple[Any, ...]]: ...


def distil(model: str, gpu: str, tensor_parallel: int) -> dict[str, Any]:
    """The tables of one model on one GPU type, in milliseconds per engine step.

    A step's time is the non-attention time at its token count, plus attention of each prefill chunk, plus decode
    attention of the batch; summed over operations, the tables give the library's own answers at the grid points.
    """
    engine = _engine(model, gpu, tensor_parallel)
    context_rest, context_attention = _split(engine.evaluate_context_ops, "context_attention")
    decode_rest, decode_attention = _split(engine.evaluate_generation_ops, "generation_attention")

    def context(index: list[int], **shape: int) -> float:
        return _total(engine.evaluate_context_ops(index, batch_size=1, **shape))

    def decode(index: list[int], batch: int, tokens: int) -> float:
        return _total(engine.evaluate_generation_ops(index, batch_size=batch, s=tokens))

    return {
        "model": model,
        "gpu": gpu,
        "tensor_parallel": tensor_parallel,
        "provenance": PROVENANCE,
        "tokens": TOKENS,
        "context_ms": [context(context_rest, s=tokens) for tokens in TOKENS],
        "batches": BATCHES,
        "generation_ms": [decode(decode_rest, batch, 512) for batch in BATCHES],
        "contexts": CONTEXTS,
        "decode_attention_ms": [[decode(decode_attention, b, c) for c in CONTEXTS] for b in BATCHES],
        "chunks": CHUNKS,
        "cached": CACHED,
        "prefill_attention_ms": [[context(context_attention, s=n, prefix=p) for p in CACHED] for n in CHUNKS],
    }


def _engine(model: str, gpu: str, tensor_parallel: int) -> _Operations:
    """The library's engine; imported here only, because its name changes with its next version."""
    library = import_module("aiconfigurator_core.sdk.engine")
    engine: _Operations = library.EngineHandle.compile(
        MODELS[model].repository, GPUS[gpu].silicon_name, "vllm", tp_size=tensor_parallel
    )
    return engine


def _split(evaluate: Callable[..., list[tuple[Any, ...]]], attention: str) -> tuple[list[int], list[int]]:
    """Operation indices without and with the one called `attention`; the library tells the end by raising."""
    rest: list[int] = []
    chosen: list[int] = []
    index = 0
    while True:
        try:
            name = evaluate([index], batch_size=1, s=64)[0][0]
        except (IndexError, ValueError, RuntimeError):
            return rest, chosen
        (chosen if name == attention else rest).append(index)
        index += 1


def _total(operations: list[tuple[Any, ...]]) -> float:
    return float(f"{sum(operation[1] for operation in operations):.6g}")


def main() -> None:
    """Write one file per target into the package's silicon folder."""
    folder = Path(__file__).parent / "silicon"
    for model, gpu, tensor_parallel in TARGETS:
        path = folder / f"{model}_{gpu}_tp{tensor_parallel}.json"
        path.write_text(json.dumps(distil(model, gpu, tensor_parallel), separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
