"""What an engine version adds to measured kernel times: host time per step and request, and how its kernels differ."""

from collections.abc import Mapping
from dataclasses import dataclass

from stack.simulator.engine.layout import Tables
from stack.simulator.hardware.model import Model

DENSE = "dense"
"""Kernel family of models without experts whose queries share KV heads."""
MANY_KV_HEADS = "dense, many KV heads"
"""The same without sharing: attention reads several times more, with kernels of its own."""
MANY = 32
"""From here on KV heads are many; models that share them have 8 or 16 at most."""


@dataclass(frozen=True)
class HostOverhead:
    """Time that the step-time tables do not explain, for one model on one GPU type.

    Attributes:
        step_ms: per engine step: scheduling, launching, sampling.
        sequence_ms: per engine step and running request.
        frontend_s: HTTP, tokenisation and detokenisation; added to TTFT and E2E.
        async_lag: whether step k+1 is scheduled while step k runs, so that an arrival during k starts in k+2.
        decode_scale: time of the kernels at one token per request, relative to the tables.
        prefill_scale: time per further token, relative to the tables.
    """

    step_ms: float
    sequence_ms: float
    frontend_s: float
    async_lag: bool
    decode_scale: float = 1.0
    prefill_scale: float = 1.0


@dataclass(frozen=True)
class KernelScale:
    """How one engine version's kernels of one family on one GPU type compare with the tables; see `HostOverhead`."""

    family: str
    gpu: str
    decode: float = 1.0
    prefill: float = 1.0


@dataclass(frozen=True)
class EngineProfile:
    """The constants of one engine generation.

    Attributes:
        step_ms, sequence_ms, frontend_s, async_lag: see `HostOverhead`.
        kernels: at most one entry per family and GPU type.
        provenance: which measured rows the constants were fitted on, how many and when.
    """

    step_ms: float
    sequence_ms: float
    frontend_s: float
    async_lag: bool
    kernels: tuple[KernelScale, ...] = ()
    provenance: str = ""

    def scale(self, family: str, gpu: str) -> KernelScale:
        """The scale of kernels of `family` on `gpu`.

        A family known on other GPU types only takes the mean of those; an unknown family runs as the tables say.
        """
        known = [scale for scale in self.kernels if scale.family == family]
        chosen = [scale for scale in known if scale.gpu == gpu] or known or [KernelScale(family, gpu)]
        return KernelScale(
            family=family,
            gpu=gpu,
            decode=sum(scale.decode for scale in chosen) / len(chosen),
            prefill=sum(scale.prefill for scale in chosen) / len(chosen),
        )

    def host(self, family: str = DENSE, gpu: str = "") -> HostOverhead:
        """The overhead of a replica that runs kernels of `family` on `gpu`; see `scale`."""
        scale = self.scale(family, gpu)
        return HostOverhead(
            step_ms=self.step_ms,
            sequence_ms=self.sequence_ms,
            frontend_s=self.frontend_s,
            async_lag=self.async_lag,
            decode_scale=scale.decode,
            prefill_scale=scale.prefill,
        )


def kernel_family(model: Model, precision: str) -> str:
    """Which kernels dominate a model's steps: experts in one precision, attention over many KV heads, or neither."""
    if model.expert > 0:
        return f"experts in {precision}"
    return MANY_KV_HEADS if model.kv_heads >= MANY and not model.latent_size else DENSE


def scaled(tables: Tables, host: HostOverhead) -> Tables:
    """Step times with the engine version's kernels: one token's time by one factor, what is added per token by another.

    A step with one token reads all weights, as decoding does; further prompt tokens add arithmetic.
    """
    first = tables.context_ms[0]
    return tables._replace(
        context_ms=first * host.decode_scale + (tables.context_ms - first) * host.prefill_scale,
        generation_ms=tables.generation_ms * host.decode_scale,
        decode_attention_ms=tables.decode_attention_ms * host.decode_scale,
        prefill_attention_ms=tables.prefill_attention_ms * host.prefill_scale,
    )


_DENSE_2026 = (KernelScale(DENSE, "h100", 0.989, 1.091), KernelScale(DENSE, "h200", 0.926, 1.118))
"""Llama-3.1-70B FP8: 41 unversioned rows of April 2026."""

PROFILES: Mapping[str, EngineProfile] = {
    "vllm-0.12": EngineProfile(
        step_ms=1.778,
        sequence_ms=0.0377,
        frontend_s=0.0425,
        async_lag=False,
        kernels=(KernelScale(DENSE, "h100", 0.950, 1.066),),
        provenance="57 closed-loop rows, Qwen3-32B on H100 with TP 2 and 8; fitted 2026-11-30",
    ),
    "vllm-0.15": EngineProfile(
        step_ms=0.0,
        sequence_ms=0.0,
        frontend_s=0.0067,
        async_lag=True,
        kernels=(
            KernelScale(DENSE, "h100", 1.033, 1.090),
            KernelScale(MANY_KV_HEADS, "h100", 0.925, 0.989),
            KernelScale("experts in bf16", "h100", 0.965, 0.891),
        ),
        provenance="10 open-loop rows, Llama-2, CodeLlama and Mixtral on H100; fitted 2026-11-30",
    ),
    "vllm-0.18": EngineProfile(
        step_ms=0.636,
        sequence_ms=0.0153,
        frontend_s=0.0130,
        async_lag=True,
        kernels=(KernelScale("experts in mxfp4", "h100", 0.860, 1.547), *_DENSE_2026),
        provenance="43 closed-loop rows, gpt-oss-120b on H100 with TP 2 to 8, dense kernels of 41 unversioned rows of "
        "Llama-3.1-70B; fitted 2026-11-30",
    ),
    "vllm-unversioned": EngineProfile(
        step_ms=1.417,
        sequence_ms=0.0228,
        frontend_s=0.0080,
        async_lag=True,
        kernels=(*_DENSE_2026, KernelScale("experts in mxfp4", "h100", 0.930, 1.660)),
        provenance="43 closed-loop rows of April 2026 whose version is not published, Llama-3.1-70B on H100 and H200 "
        "with TP 1 and 4, gpt-oss-120b on H100; fitted 2026-11-30",
    ),
}
"""Fitted on public benchmark rows by `flashvector simulate validate`, which fits them anew on any file; see
docs/accuracy.md. vllm-0.18 is the one for current versions."""
