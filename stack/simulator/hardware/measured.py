"""Step times of an engine that no table knows, from what it was seen to take; see `step_fit` for how they are found."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from stack.errors import InputError
from stack.setting import Value
from stack.simulator.engine.layout import BLOCK, Tables
from stack.simulator.hardware.overhead import HostOverhead

_TOKENS, _BATCH, _CONTEXT = 65_536.0, 4_096.0, 1_048_576.0
"""Ends of the grids. All of it is linear, so two points a grid are exact, also beyond them."""


FIT, OK = "step_fit", "ok"
"""Whether there is a fit, or in words why not."""
BASE_MS, TOKEN_MS, SEQUENCE_MS = "step_base_ms", "step_token_ms", "step_sequence_ms"
KV_BLOCK_MS = "step_kv_block_ms"
"""Per block of the engine's own size, which `block_size` tells."""
ERROR_RATIO, LAG = "step_fit_error_ratio", "step_lag"
BATCH_MIN, BATCH_MAX, TOKENS_MAX, SEEN = "step_batch_min", "step_batch_max", "step_tokens_max", "step_seen"
MAX_SEQUENCES, MAX_TOKENS = "max_num_seqs", "max_num_batched_tokens"
"""Keys of `Snapshot.configuration`; as labels of a recorded incident their values are texts."""


@dataclass(frozen=True, kw_only=True)
class MeasuredSteps:
    """An engine as measured, in the place of a model's and a GPU's tables.

    Attributes:
        model: the name it reports.
        base_ms, token_ms, sequence_ms, kv_token_ms: time of a step, per computed token, running request, token in KV.
        kv_tokens: tokens for which it has KV blocks.
        batch_max: most running requests that steps were seen with.
        error_ratio: median relative error of the sum over the kinds of steps seen.
        frontend_s: HTTP, tokenisation and detokenisation; added to TTFT and E2E.
        async_lag: whether the next step is scheduled while one runs.
    """

    model: str
    base_ms: float
    token_ms: float
    sequence_ms: float
    kv_token_ms: float
    kv_tokens: int
    batch_max: float
    error_ratio: float
    frontend_s: float = 0.0
    async_lag: bool = False

    def __post_init__(self) -> None:
        """Refuse what cannot be simulated."""
        times = (self.base_ms, self.token_ms, self.sequence_ms, self.kv_token_ms, self.frontend_s)
        if not all(np.isfinite(times)) or min(times) < 0 or self.base_ms + self.token_ms + self.sequence_ms <= 0:
            raise InputError(f"measured step times must be finite, not negative and above zero together, not {times}")
        if self.kv_tokens < BLOCK:
            raise InputError(f"an engine needs KV for at least {BLOCK} tokens, not {self.kv_tokens}")

    @property
    def kv_blocks(self) -> int:
        """KV blocks of the simulated size; what the engine's own, larger blocks leave unused is not counted."""
        return self.kv_tokens // BLOCK

    @property
    def overhead(self) -> HostOverhead:
        """Host time is in the measured times already."""
        return HostOverhead(step_ms=0.0, sequence_ms=0.0, frontend_s=self.frontend_s, async_lag=self.async_lag)

    @property
    def tables(self) -> Tables:
        """The sum in the form of tables: what goes by request and context stands with attention."""
        tokens, batches = np.array([0.0, _TOKENS]), np.array([0.0, _BATCH])
        contexts, sequence = np.array([0.0, _CONTEXT]), self.sequence_ms
        held = self.kv_token_ms * contexts
        return Tables(
            tokens=tokens,
            context_ms=self.base_ms + self.token_ms * tokens,
            batches=batches,
            generation_ms=self.base_ms + self.token_ms * batches,
            contexts=contexts,
            decode_attention_ms=np.outer(batches, sequence + held),
            chunks=tokens,
            cached=contexts,
            prefill_attention_ms=sequence + np.add.outer(self.kv_token_ms * tokens, held),
        )

    def configuration(self, block_tokens: int) -> dict[str, Value]:
        """The keys of `Snapshot.configuration` by which an engine with KV blocks of that size tells these times."""
        return {
            FIT: OK,
            BASE_MS: self.base_ms,
            TOKEN_MS: self.token_ms,
            SEQUENCE_MS: self.sequence_ms,
            KV_BLOCK_MS: self.kv_token_ms * block_tokens,
            ERROR_RATIO: self.error_ratio,
            LAG: float(self.async_lag),
            BATCH_MAX: self.batch_max,
        }


def told(facts: Mapping[str, Value], key: str) -> float | None:
    """A number of a replica's configuration, whether it came as one or as a label's text; None without one."""
    try:
        value = float(facts[key])
    except (KeyError, ValueError):
        return None
    return value if np.isfinite(value) else None
