"""Where each limit lives in vLLM's scheduler, over the versions this plugin fits."""

import time
from dataclasses import replace
from typing import Any

from flashvector_vllm.limits import Bounds, Limits

WRITTEN = (
    "max_num_active_reqs",
    "max_num_running_reqs",
    "max_num_scheduled_tokens",
    "long_prefill_token_threshold",
    "watermark_blocks",
    "dynamic_sd_lookup",
)
"""Attributes of the scheduler, its configuration and its KV cache manager that limits are written to."""


def boot_limits(scheduler: Any) -> Limits:
    """The limits a scheduler was started with, read before anything is changed."""
    return Limits(
        running_request_cap=int(getattr(scheduler, "max_num_active_reqs", scheduler.max_num_running_reqs)),
        tokens_per_step=int(scheduler.max_num_scheduled_tokens),
        long_prefill_threshold_tokens=int(scheduler.scheduler_config.long_prefill_token_threshold),
        usable_kv_blocks=int(scheduler.kv_cache_manager.block_pool.num_gpu_blocks) - 1,
        watermark_blocks=int(getattr(scheduler.kv_cache_manager, "watermark_blocks", 0)),
        speculative_tokens=int(scheduler.num_spec_tokens),
    )


def longest_request_blocks(scheduler: Any) -> int:
    """KV blocks that one request of `max_model_len` tokens needs: below that it could wait for ever.

    vLLM's own `get_max_concurrency_for_kv_cache_config` is blocks divided by this number.
    """
    from vllm.v1.core.kv_cache_utils import get_max_concurrency_for_kv_cache_config

    config = scheduler.kv_cache_config
    together = float(get_max_concurrency_for_kv_cache_config(scheduler.vllm_config, config))
    return max(1, round(int(config.num_blocks) / together))


def bounds_of(scheduler: Any) -> Bounds:
    """What the limits may be in this engine."""
    boot, config, longest = boot_limits(scheduler), scheduler.scheduler_config, longest_request_blocks(scheduler)
    uncut = not config.enable_chunked_prefill or config.disable_chunked_mm_input
    ceiling = replace(
        boot,
        running_request_cap=int(config.max_num_seqs),
        long_prefill_threshold_tokens=0 if uncut else int(scheduler.max_model_len),
        watermark_blocks=max(0, boot.usable_kv_blocks - longest),
    )
    floor = Limits(
        running_request_cap=1,
        tokens_per_step=boot.tokens_per_step if uncut else 1,
        long_prefill_threshold_tokens=0,
        usable_kv_blocks=min(longest, boot.usable_kv_blocks),
        watermark_blocks=0,
        speculative_tokens=0,
    )
    return Bounds(boot, floor, ceiling, longest, _unsupported(scheduler, uncut))


def _unsupported(scheduler: Any, uncut: bool) -> dict[str, str]:
    reasons = {}
    if uncut:
        reason = "prompts are computed in one piece here (no chunked prefill), so it must stay as started"
        reasons = {"tokens_per_step": reason, "long_prefill_threshold_tokens": reason}
    if not hasattr(scheduler.kv_cache_manager, "watermark_blocks"):
        reasons["watermark_blocks"] = "needs vLLM 0.26 or newer"
    if not scheduler.num_spec_tokens:
        reasons["speculative_tokens"] = "the engine was started without --speculative-config"
    elif not hasattr(scheduler, "dynamic_sd_lookup"):
        reasons["speculative_tokens"] = "needs vLLM 0.26 or newer"
    elif not getattr(scheduler, "num_sampled_tokens_per_step", 1):
        reasons["speculative_tokens"] = "a diffusion model's canvas has a fixed length"
    return reasons


class Levers:
    """Writes limits into one scheduler, all but the KV blocks.

    Args:
        scheduler: vLLM's scheduler, as started.
        bounds: of the same scheduler.
    """

    def __init__(self, scheduler: Any, bounds: Bounds) -> None:
        self._scheduler, self._bounds = scheduler, bounds
        self._drafts = bounds.boot.speculative_tokens
        self._boot_lookup: list[int] | None = getattr(scheduler, "dynamic_sd_lookup", None)
        self._started_with = [
            (holder, name, getattr(holder, name))
            for holder in (scheduler, scheduler.scheduler_config, scheduler.kv_cache_manager)
            for name in WRITTEN
            if hasattr(holder, name)
        ]

    def restore(self) -> None:
        """Put everything back as the engine was started, without any arithmetic that could fail."""
        for holder, name, value in self._started_with:
            setattr(holder, name, value)
        self._drafts = self._bounds.boot.speculative_tokens

    def write(self, limits: Limits) -> Limits:
        """Put limits in force for the next step.

        Returns:
            what is in force: with more requests running than the cap allows (draining), tokens per step stay high
            enough for all of them.
        """
        scheduler, running = self._scheduler, len(self._scheduler.running)
        if running > limits.running_request_cap:
            reach = min(running * limits.tokens_per_request, self._bounds.ceiling.tokens_per_step)
            if limits.tokens_per_step < reach:
                limits = replace(limits, tokens_per_step=reach)
        self._write_cap(limits.running_request_cap, running)
        scheduler.max_num_scheduled_tokens = limits.tokens_per_step
        scheduler.scheduler_config.long_prefill_token_threshold = limits.long_prefill_threshold_tokens
        if "watermark_blocks" not in self._bounds.unsupported:
            scheduler.kv_cache_manager.watermark_blocks = limits.watermark_blocks
        if limits.speculative_tokens != self._drafts:
            self._write_drafts(limits.speculative_tokens)
        return limits

    def _write_cap(self, cap: int, running: int) -> None:
        """From vLLM 0.31 on admission has its own attribute; before, the cap must never fall below what runs.

        `schedule()` asserts `len(running) <= max_num_running_reqs`, and a failed assertion there kills the engine.
        """
        if hasattr(self._scheduler, "max_num_active_reqs"):
            self._scheduler.max_num_active_reqs = cap
        else:
            self._scheduler.max_num_running_reqs = max(cap, running)

    def _write_drafts(self, drafts: int) -> None:
        """Set vLLM's table of draft length by batch size, each entry cut to the limit."""
        boot = self._bounds.boot.speculative_tokens
        table = self._boot_lookup
        if drafts < boot:
            table = [min(drafts, one) for one in table or [boot] * (self._bounds.ceiling.running_request_cap + 1)]
        self._scheduler.dynamic_sd_lookup = table
        self._drafts = drafts


def preempt_above(scheduler: Any, cap: int) -> list[str]:
    """Push requests above the cap back into the queue, as vLLM's `schedule()` chooses and does it.

    They keep their output and compute it anew when they are admitted again.

    Returns:
        ids of the requests.
    """
    stale = {"drop_stale_output": True} if getattr(scheduler, "requires_kv_delivery", False) else {}
    by_priority, preempted = scheduler.scheduler_config.policy == "priority", []
    while len(scheduler.running) > cap:
        place = -1
        if by_priority:
            ranks = [(request.priority, request.arrival_time) for request in scheduler.running]
            place = ranks.index(max(ranks))
        request = scheduler.running.pop(place)
        try:
            scheduler._preempt_request(request, time.monotonic(), **stale)
        except BaseException:
            scheduler.running.append(request)  # in no list it would never end
            raise
        preempted.append(request.request_id)
    return preempted
