"""What an engine version adds to measured kernel times: host time per step and request, and how its kernels differ."""

from collections.abc import Mapping
from dataclasses import dataclass

from stack.simulator.engine.layout import Tables

DENSE = "dense"
"""Kernel family of models without experts; a mixture's family is the precision of its experts."""


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

    def host(self, family: str = DENSE, gpu: str = "") -> HostOverhead:
        """The overhead of a replica that runs kernels of `family` on `gpu`.

        A family known on other GPU types only takes the mean of those; an unknown family runs as the tables say.
        """
        known = [scale for scale in self.kernels if scale.family == family]
        chosen = [scale for scale in known if scale.gpu == gpu] or known or [KernelScale(family, gpu)]
        return HostOverhead(
            step_ms=self.step_ms,
            sequence_ms=self.sequence_ms,
            frontend_s=self.frontend_s,
            async_lag=self.async_lag,
            decode_scale=sum(scale.decode for scale in chosen) / len(chosen),
            prefill_scale=sum(scale.prefill for scale in chosen) / len(chosen),
        )


def kernel_family(has_experts: bool, precision: str) -> str:
    """Which kernels dominate a model's steps: dense linear layers, or experts in one precision."""
    return f"experts in {precision}" if has_experts else DENSE


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


PROFILES: Mapping[str, EngineProfile] = {
    "vllm-0.12": EngineProfile(1.9, 0.041, 0.008, False),
    "vllm-0.18": EngineProfile(0.13, 0.0164, 0.008, True),
}
"""Fitted profiles by engine generation; `flashvector simulate validate` fits them anew on any file of measured rows."""
