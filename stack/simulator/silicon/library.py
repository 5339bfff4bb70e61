"""The one door to the library of measured kernel times, an optional extra that is never needed at run time.

The library is aiconfigurator-core 0.12.0 (Apache-2.0, NVIDIA). Its successor 0.13 renames the module, so nothing else
may import it.
"""

import json
import logging
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from stack.errors import FlashVectorError, InputError
from stack.simulator.hardware.gpu import Gpu
from stack.simulator.hardware.model import Config, architecture_of
from stack.simulator.hardware.precision import Precision

LIBRARY = "aiconfigurator-core 0.12.0"
_ROOT = "aiconfigurator_core"
_SAME_SHAPE = {"MistralForCausalLM": "LlamaForCausalLM"}
"""Architectures that the library does not name, with one of the same layers that it does."""
_ATTENTION = ("attention", "mla")
"""Parts of the names of operations whose time depends on the context."""
FUSED_CONTEXT = 16
"""Context so short that attention takes no time worth counting."""


class LibraryAbsentError(FlashVectorError):
    """The optional extra is not installed."""


class Experts(NamedTuple):
    """How a mixture's experts are spread: GPUs that share each of them, and groups of them; their product is TP."""

    sharing: int
    groups: int


class Kernels:
    """Measured times of one model's operations on one GPU type, in milliseconds.

    Attributes:
        measured_with: the engine version whose kernels were timed.
        fused_attention: whether attention was timed together with its projections only.
        gaps: tiers that the library answered from because measured data lacked; empty for pure measurements.
    """

    def __init__(self, config: Config, gpu: Gpu, tensor_parallel: int, precision: Precision, experts: Experts) -> None:
        """Compile the model.

        Raises:
            LibraryAbsentError: the extra is not installed.
            InputError: the library has no data for it.
        """
        engine, errors = _library()
        gemm, moe, kv = precision.kernels
        self.measured_with = f"vLLM {_current_version(gpu)}"
        self.gaps: set[str] = set()
        self._errors: tuple[type[Exception], ...] = errors
        self._engine: Any = None
        with TemporaryDirectory() as folder:
            (Path(folder) / "config.json").write_text(json.dumps(_plain(config)))
            self._engine = self._asked(
                lambda: engine.EngineHandle.compile(
                    folder,
                    gpu.silicon_name,
                    "vllm",
                    tp_size=tensor_parallel,
                    moe_tp_size=experts.sharing,
                    moe_ep_size=experts.groups,
                    gemm_quant_mode=gemm,
                    moe_quant_mode=moe,
                    kvcache_quant_mode=kv,
                    fmha_quant_mode="bfloat16",
                )
            )
        self.fused_attention = False
        self._context = self._split(self._engine.evaluate_context_ops)
        self._generation = self._split(self._engine.evaluate_generation_ops)

    def context_rest(self, tokens: int) -> float:
        """Everything but attention for `tokens` prompt tokens."""
        rest = self._total(self._engine.evaluate_context_ops, self._context[0], batch_size=1, s=tokens)
        return rest + self._fused_context()

    def context_attention(self, tokens: int, cached: int) -> float:
        """Attention of `tokens` new prompt tokens behind `cached` ones."""
        return max(0.0, self._context_block(tokens, cached) - self._fused_context())

    def generation_rest(self, batch: int) -> float:
        """Everything but attention for one token of each of `batch` requests; no part of it knows their context."""
        rest = self._total(self._engine.evaluate_generation_ops, self._generation[0], batch_size=batch, s=512)
        return rest + self._fused_generation(batch)

    def generation_attention(self, batch: int, context: int) -> float:
        """Attention of one token of each of `batch` requests over `context` tokens each."""
        return max(0.0, self._generation_block(batch, context) - self._fused_generation(batch))

    def _context_block(self, tokens: int, cached: int) -> float:
        return self._total(self._engine.evaluate_context_ops, self._context[1], batch_size=1, s=tokens, prefix=cached)

    def _generation_block(self, batch: int, context: int) -> float:
        return self._total(self._engine.evaluate_generation_ops, self._generation[1], batch_size=batch, s=context)

    def _fused_context(self) -> float:
        """What is in every prefill attention because projections were timed with it: that of a single token."""
        return self._context_block(1, 0) if self.fused_attention else 0.0

    def _fused_generation(self, batch: int) -> float:
        return self._generation_block(batch, FUSED_CONTEXT) if self.fused_attention else 0.0

    def decode(self, batch: int, context: int) -> float:
        """The library's own answer for a decode step; it wants the prompt, of which this is the second next token."""
        return float(self._asked(lambda: self._engine.decode_step_latency(batch, context - 2, 2)))

    def prefill(self, tokens: int, cached: int) -> float:
        """The library's own answer for one request's prompt: `tokens` new ones behind `cached` ones."""
        return float(self._asked(lambda: self._engine.predict_prefill_latency(1, tokens + cached, cached)))

    def mixed(self, tokens: int, batch: int, beyond: int) -> float:
        """The library's own answer for a whole prompt beside `batch` decoding requests of tokens + beyond + 1 each."""
        return float(self._asked(lambda: self._engine.mixed_step_latency(tokens, batch, tokens, 2 * beyond)))

    def sources(self) -> dict[str, float]:
        """Share of the time by how it was found, over some usual steps: measured (silicon), or fitted to that."""
        found: Counter[str] = Counter()
        for batch in (1, 32, 256):
            found.update(self._by_source(self._engine.evaluate_generation_ops, self._generation, batch, 1024))
        for tokens in (128, 2048):
            found.update(self._by_source(self._engine.evaluate_context_ops, self._context, 1, tokens))
        total = sum(found.values())
        return {source: round(time / total, 3) for source, time in found.most_common() if time / total >= 5e-4}

    def _by_source(
        self, evaluate: Callable[..., Any], index: tuple[list[int], list[int]], batch: int, tokens: int
    ) -> Mapping[str, float]:
        found: Counter[str] = Counter()
        for _, time_ms, _, source in self._asked(lambda: evaluate(index[0] + index[1], batch_size=batch, s=tokens)):
            found[source] += time_ms
        return found

    def _split(self, evaluate: Callable[..., Any]) -> tuple[list[int], list[int]]:
        """Operation indices without and with attention; the library tells the end by raising."""
        found: tuple[list[int], list[int]] = ([], [])
        for index in range(1000):
            try:
                name = evaluate([index], batch_size=1, s=64)[0][0]
            except ValueError as error:
                if "out of range" in str(error):
                    break
                raise InputError(f"nothing measured: {_line(error)}") from error
            except self._errors as error:
                raise InputError(f"nothing measured: {_line(error)}") from error
            found[any(part in name for part in _ATTENTION)].append(index)
            self.fused_attention = self.fused_attention or "mla" in name
        return found

    def _total(self, evaluate: Callable[..., Any], index: list[int], **shape: int) -> float:
        return float(sum(operation[1] for operation in self._asked(lambda: evaluate(index, **shape))))

    def _asked(self, question: Callable[[], Any]) -> Any:  # noqa: ANN401
        try:
            answer = question()
        except self._errors as error:
            raise InputError(f"nothing measured: {_line(error)}") from error
        gap = None if self._engine is None else self._engine.last_provenance()
        if gap is not None:
            self.gaps.add(str(gap))
        return answer


def _library() -> tuple[Any, tuple[type[Exception], ...]]:
    """The library's engine module, and what it raises on models and shapes without data."""
    try:
        engine = import_module(f"{_ROOT}.sdk.engine")
        errors = import_module(f"{_ROOT}.sdk.errors")
    except ImportError as error:
        raise LibraryAbsentError(
            f"measured kernel times (the extra `silicon`) are not installed; install them with: "
            f"{sys.executable} -m pip install {LIBRARY.replace(' ', '==')}"
        ) from error
    logging.getLogger(_ROOT).setLevel(logging.ERROR)
    return engine, (errors.PerfDataNotAvailableError, ValueError, LookupError, TypeError, AttributeError, RuntimeError)


def _current_version(gpu: Gpu) -> str:
    database = import_module(f"{_ROOT}.sdk.perf_database")
    return str(database.resolve_query_version(gpu.silicon_name, "vllm", "current"))


def _plain(config: Config) -> dict[str, Any]:
    """The config without quantization, which is given apart, and with an architecture that the library names."""
    architecture = architecture_of(config)
    plain = {key: value for key, value in config.items() if key != "quantization_config"}
    if isinstance(plain.get("text_config"), Mapping):
        text = plain["text_config"]
        plain["text_config"] = {key: value for key, value in text.items() if key != "quantization_config"}
    named = [_SAME_SHAPE.get(architecture, architecture)]
    return {"max_position_embeddings": 131072} | plain | {"architectures": named}


def _line(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text if len(text) <= 200 else f"{text[:200]}..."
