"""The limits that can be changed, and what each may be: pure numbers, nothing of vLLM."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace


@dataclass(frozen=True)
class Limits:
    """What bounds one engine step.

    Attributes:
        running_request_cap: requests that may be running; nobody is admitted above it.
        tokens_per_step: tokens one step may compute.
        long_prefill_threshold_tokens: longest piece of a prompt in one step; 0 for no limit.
        usable_kv_blocks: KV blocks requests may use; the rest is held out of the pool.
        watermark_blocks: KV blocks that must stay free when a request is admitted.
        speculative_tokens: draft tokens per request and step.
    """

    running_request_cap: int
    tokens_per_step: int
    long_prefill_threshold_tokens: int
    usable_kv_blocks: int
    watermark_blocks: int
    speculative_tokens: int

    @property
    def tokens_per_request(self) -> int:
        """Tokens a decoding request asks of one step: its own and its drafts."""
        return 1 + self.speculative_tokens


LIMIT_NAMES = tuple(one.name for one in fields(Limits))


@dataclass(frozen=True)
class Bounds:
    """What the limits may be in this engine.

    Attributes:
        boot: the limits the engine was started with.
        floor: lowest values that keep every possible request going.
        ceiling: highest values, from the engine's start: buffers and CUDA graphs are sized by them.
        longest_request_blocks: KV blocks that a request of the longest length needs.
        unsupported: limits that can't be changed here, each with the reason.
    """

    boot: Limits
    floor: Limits
    ceiling: Limits
    longest_request_blocks: int
    unsupported: Mapping[str, str] = field(default_factory=dict)

    def fitted(self, asked: Limits) -> Limits:
        """The nearest limits that are safe.

        Each value goes between floor and ceiling. Then the cross-limits: tokens per step must reach every running
        request with its drafts, or the last ones starve (vLLM's list has no rotation); a watermark must leave room to
        admit the longest request. The boot values stand as they are: the operator chose them.
        """
        if asked == self.boot:
            return asked
        low, high = asdict(self.floor), asdict(self.ceiling)
        inside = Limits(**{name: min(max(value, low[name]), high[name]) for name, value in asdict(asked).items()})
        cap = inside.running_request_cap
        if cap != self.boot.running_request_cap:
            cap = max(1, min(cap, self.ceiling.tokens_per_step // inside.tokens_per_request))
        reach = min(cap * inside.tokens_per_request, self.ceiling.tokens_per_step)
        return replace(
            inside,
            running_request_cap=cap,
            tokens_per_step=max(inside.tokens_per_step, reach),
            watermark_blocks=min(
                inside.watermark_blocks, max(0, inside.usable_kv_blocks - self.longest_request_blocks)
            ),
        )

    def span(self, name: str) -> tuple[int, int]:
        """Lowest and highest value of one limit."""
        return getattr(self.floor, name), getattr(self.ceiling, name)
