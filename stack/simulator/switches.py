"""Switches of the engine's scheduler that are set at its start, with vLLM 0.32's defaults."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Switches:
    """How the engines were started, as far as it decides over a step.

    Attributes:
        prefix_caching: blocks keep what they cached until they are needed (`--enable-prefix-caching`).
        chunked_prefill: a prompt longer than what is left of a step's budget is cut (`--enable-chunked-prefill`).
        reserve_whole_prompt: a request is admitted only if all its known tokens would fit
            (`--scheduler-reserve-full-isl`).
        watermark_ratio: share of the KV blocks that an admission leaves free while others run (`--watermark`).
        adaptive_long_prefill: with few requests the long-prefill threshold is raised to their share of the budget.
    """

    prefix_caching: bool = True
    chunked_prefill: bool = True
    reserve_whole_prompt: bool = True
    watermark_ratio: float = 0.0
    adaptive_long_prefill: bool = False
