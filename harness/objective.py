"""What operators promise their users: the limits that decide whether a request was good."""

from collections.abc import Mapping
from dataclasses import dataclass

from stack.snapshot import Signal


@dataclass(frozen=True)
class Slo:
    """Service level objective of one pool.

    Attributes:
        ttft_s: time to first token at most, for a request with an empty prompt.
        ttft_s_per_prompt_token: added allowance per prompt token.
        itl_s: mean time between a request's tokens at most.
        e2e_p99_s: limit on the 99th percentile of whole requests; None when only the two above are promised.
    """

    ttft_s: float = 1.0
    ttft_s_per_prompt_token: float = 1e-4
    itl_s: float = 0.05
    e2e_p99_s: float | None = None

    def ttft_limit_s(self, prompt_tokens: float) -> float:
        """TTFT limit of a request with `prompt_tokens` of prompt."""
        return self.ttft_s + self.ttft_s_per_prompt_token * prompt_tokens

    def limits_s(self, prompt_tokens: float) -> Mapping[Signal, float | None]:
        """Limit on each promised latency for prompts of this length; on token times the promise is on the mean."""
        return {
            Signal.E2E_P99_S: self.e2e_p99_s,
            Signal.TTFT_P99_S: self.ttft_limit_s(prompt_tokens),
            Signal.ITL_MEAN_S: self.itl_s,
        }
