"""What a recorded trace stresses, seen from inside vLLM's scheduler while it is recorded."""

from typing import Any

from vllm.v1.core.kv_cache_utils import get_block_hash
from vllm_traces import BLOCK_TOKENS, Step, Trace


class KindSpotter:
    """Collects the names of what happened in `kinds`; call `before` and `after` around every `schedule()`."""

    def __init__(self, trace: Trace, scheduler: Any) -> None:
        self.trace, self.scheduler = trace, scheduler
        self.kinds: set[str] = set()
        self.depths: set[int] = set()
        self.cached_once: set[Any] = set()
        self.look_at_requests()

    def look_at_requests(self) -> None:
        """Kinds that lie in the requests themselves."""
        requests, limits = self.trace.requests, self.trace.configuration
        arrivals = [request.arrival_step for request in requests]
        self.note("burst", max(arrivals.count(step) for step in arrivals) >= 3)
        self.note("one_token_output", any(request.output_tokens == 1 for request in requests))
        longest = max(request.prompt_tokens for request in requests)
        self.note("prompt_longer_than_budget", longest > limits.max_num_batched_tokens)
        usual = limits.watermark == 0 and limits.scheduler_reserve_full_isl and limits.max_num_active_seqs is None
        usual &= limits.enable_chunked_prefill and limits.enable_prefix_caching
        self.note("default_switches", usual and not limits.long_prefill_token_threshold_adaptive)

    def note(self, kind: str, seen: bool) -> None:
        """Remember a kind if it was seen."""
        if seen:
            self.kinds.add(kind)

    def before(self) -> None:
        """Look at the cache as the call will find it."""
        pool = self.scheduler.kv_cache_manager.block_pool
        self.hashes = {block.block_id: block.block_hash for block in pool.blocks}
        self.unused = {block.block_id for block in pool.free_block_queue.get_all_free_blocks()}
        self.cached_once |= {get_block_hash(one) for one in self.hashes.values() if one is not None}
        self.waiting = {request.request_id: request for request in self.scheduler.waiting}
        self.alone = len(self.waiting) + len(self.scheduler.running) == 1
        self.cached_whole = {name for name, request in self.waiting.items() if self.all_cached(request)}
        self.note("gap", not self.waiting and not self.scheduler.running and bool(self.scheduler.current_step))

    def all_cached(self, request: Any) -> bool:
        """Whether the request's tokens are whole blocks, every one of them cached."""
        pool = self.scheduler.kv_cache_manager.block_pool
        if request.num_tokens % BLOCK_TOKENS:
            return False
        return all(pool.get_cached_block(one, [0]) for one in request.block_hashes)

    def after(self, step: Step) -> None:
        """Note what the call did."""
        pool, total = self.scheduler.kv_cache_manager.block_pool, sum(tokens for _, tokens in step.scheduled)
        for block in pool.blocks:
            old = self.hashes[block.block_id]
            self.note("eviction", old is not None and block.block_hash != old)
        copies = pool.cached_block_hash_to_block._cache.values()
        self.note("duplicate_blocks", any(isinstance(one, dict) and len(one) > 1 for one in copies))
        self.note("preemption", bool(step.preempted))
        self.note("idle_async_slot", not step.scheduled and bool(self.scheduler.running))
        for index, hit in step.hits:
            self.look_at_admitted(index, hit)
        for index, tokens in step.scheduled:
            self.look_at_granted(index, tokens, total)
        if not step.preempted and self.scheduler.waiting:
            self.look_at_blocked(total)

    def look_at_admitted(self, index: int, hit: int) -> None:
        """What an admitted request found in the cache."""
        request = self.scheduler.requests[str(index)]
        found = self.scheduler.kv_cache_manager.get_blocks(str(index)).blocks[0][: hit // BLOCK_TOKENS]
        self.note("resumed", request.num_preemptions > 0)
        self.note("resumed_hit", request.num_preemptions > 0 and hit > 0)
        self.note("generated_tokens_hit", hit > request.num_prompt_tokens)
        self.note("prefix_hit", hit > 0 and request.num_preemptions == 0)
        self.depths.add(hit)
        self.note("hits_of_three_depths", len(self.depths - {0}) >= 3)
        self.note("full_hit", str(index) in self.cached_whole and hit == request.num_tokens - BLOCK_TOKENS)
        revived = [one for one in found if one.block_id in self.unused and self.hashes[one.block_id] == one.block_hash]
        self.note("hit_on_freed_blocks", bool(revived))
        self.note("hit_within_step", any(self.hashes[one.block_id] != one.block_hash for one in found))
        block = hit // BLOCK_TOKENS
        missed = request.block_hashes[block : (request.num_tokens - 1) // BLOCK_TOKENS]
        self.note("miss_by_eviction", bool(missed) and missed[0] in self.cached_once)

    def look_at_granted(self, index: int, tokens: int, total: int) -> None:
        """Whether a grant was cut, and by what."""
        request, limits = self.scheduler.requests[str(index)], self.trace.configuration
        if not request.is_prefill_chunk:
            return
        limit = limits.long_prefill_token_threshold
        by_threshold = 0 < limit == tokens and not limits.long_prefill_token_threshold_adaptive
        self.note("cut_by_threshold", by_threshold and total < limits.max_num_batched_tokens)
        self.note("cut_by_budget", total == limits.max_num_batched_tokens and tokens != limit)
        self.note("alone_past_threshold", self.alone and 0 < limit < tokens)

    def look_at_blocked(self, total: int) -> None:
        """Why the head of the queue had to wait."""
        limits = self.trace.configuration
        cap = limits.max_num_active_seqs or limits.max_num_seqs
        full = len(self.scheduler.running) >= cap
        self.note("running_cap", full and total < limits.max_num_batched_tokens)
        room = limits.enable_chunked_prefill and total < limits.max_num_batched_tokens
        self.note("waiting_for_blocks", not full and room)
