"""vLLM 0.32's scheduling of engine steps, written plainly: block by block, with lists and dicts.

It covers a decoder-only model with one group of full-attention layers, first come first served, without speculation,
LoRA, KV connectors or pipeline stages. Names in brackets are the functions of vLLM whose behaviour is described.
"""

from collections import deque
from dataclasses import dataclass, field

from vllm_blocks import BlockPool, blocks_for
from vllm_traces import BLOCK_TOKENS, Step, Trace


@dataclass
class RequestState:
    """Progress of a request.

    Attributes:
        known: prompt tokens plus output tokens that have been returned so far.
        computed: tokens whose KV is computed or being computed by a scheduled step.
        on_the_way: output tokens of scheduled steps that have not been returned yet.
        blocks: KV blocks held, in the order of the tokens.
        hashed: how many of these are entered in the prefix cache.
    """

    index: int
    prompt: int
    output: int
    chain: tuple[int, ...]
    known: int
    computed: int = 0
    on_the_way: int = 0
    running: bool = False
    blocks: list[int] = field(default_factory=list)
    hashed: int = 0


@dataclass
class Scheduled:
    """A step on its way: (request, whether it will return a token) in order."""

    samples: list[tuple[RequestState, bool]] = field(default_factory=list)


class ReferenceEngine:
    """One engine. `step()` schedules, then processes the output of the step scheduled `lag` steps ago."""

    def __init__(self, trace: Trace) -> None:
        self.switches, self.lag = trace.configuration, trace.lag
        self.pool = BlockPool(self.switches.num_blocks, self.switches.enable_prefix_caching)
        self.cap = self.switches.max_num_active_seqs or self.switches.max_num_seqs
        self.waiting: deque[RequestState] = deque()
        self.running: list[RequestState] = []
        self.in_flight: deque[Scheduled] = deque()

    def add(self, index: int, prompt: int, output: int, chain: tuple[int, ...]) -> None:
        """A request arrives; it is seen by the next step."""
        self.waiting.append(RequestState(index, prompt, output, chain, known=prompt))

    def step(self) -> Step:
        """One engine step [EngineCore.step, step_with_batch_queue]."""
        step = Step()
        budget, threshold = self.switches.max_num_batched_tokens, self.threshold()
        budget = self.grant_running(step, budget, threshold)
        if not step.preempted:
            self.admit_waiting(step, budget, threshold)
        self.in_flight.append(self.advance(step))
        after_scheduling = len(self.pool.free)
        if len(self.in_flight) > self.lag:
            self.process(step, self.in_flight.popleft())
        step.free_blocks = (after_scheduling, len(self.pool.free))
        return step

    def threshold(self) -> int:
        """The long-prefill threshold of this step, 0 for none: a lone request is never cut."""
        requests, threshold = len(self.running) + len(self.waiting), self.switches.long_prefill_token_threshold
        if requests <= 1 or threshold == 0:
            return 0
        if self.switches.long_prefill_token_threshold_adaptive:
            threshold = max(threshold, self.switches.max_num_batched_tokens // requests)
        return threshold

    def grant_running(self, step: Step, budget: int, threshold: int) -> int:
        """Those running, in the order of their admission; who lacks blocks takes them from the end of the list."""
        i = 0
        while i < len(self.running) and budget > 0:
            request = self.running[i]
            i += 1
            tokens = self.wanted(request, budget, threshold)
            if tokens == 0:
                continue
            need = blocks_for(request.computed + tokens) - len(request.blocks)
            while need > len(self.pool.free):
                victim = self.running.pop()
                self.preempt(victim)
                step.preempted.append(victim.index)
                if victim is request:
                    return budget
            self.allocate(request, tokens)
            step.scheduled.append((request.index, tokens))
            budget -= tokens
        return budget

    def wanted(self, request: RequestState, budget: int, threshold: int) -> int:
        """Tokens a running request gets; none when its last token is already on the way."""
        if request.on_the_way > 0 and request.computed + 2 - request.on_the_way >= request.prompt + request.output:
            return 0
        tokens = request.known + request.on_the_way - request.computed
        if 0 < threshold < tokens:
            tokens = threshold
        return min(tokens, budget, self.switches.max_model_len - request.computed - 1)

    def admit_waiting(self, step: Step, budget: int, threshold: int) -> None:
        """From the head of the queue until the first that does not fit; nobody overtakes."""
        while budget > 0 and self.waiting and len(self.running) < self.cap:
            request = self.waiting[0]
            cached = self.pool.cached_prefix(request.chain, (request.known - 1) // BLOCK_TOKENS)
            hit = len(cached) * BLOCK_TOKENS
            tokens = request.known - hit
            if 0 < threshold < tokens:
                tokens = threshold
            if tokens > budget and not self.switches.enable_chunked_prefill:
                return
            tokens = min(tokens, budget)
            if not self.fits(request, cached, hit + tokens):
                return
            self.waiting.popleft()
            self.running.append(request)
            request.running = True
            self.pool.take_cached(cached)
            request.blocks, request.hashed, request.computed = list(cached), len(cached), hit
            self.allocate(request, tokens)
            step.scheduled.append((request.index, tokens))
            step.hits.append((request.index, hit))
            budget -= tokens

    def fits(self, request: RequestState, cached: list[int], first_chunk_end: int) -> bool:
        """Whether the blocks of all known tokens are free; nothing beyond the first chunk is reserved [allocate_slots].

        Cached blocks that nobody uses are free as well, so those the request would reuse are no room for it.
        """
        end = request.known if self.switches.scheduler_reserve_full_isl else first_chunk_end
        need = blocks_for(end) - len(cached) + self.pool.unused_among(cached)
        if self.running:
            need += int(self.switches.watermark * self.switches.num_blocks)
        return need <= len(self.pool.free)

    def allocate(self, request: RequestState, tokens: int) -> None:
        """Take blocks and enter the full ones in the cache at once, before the step has computed them."""
        end = request.computed + tokens
        request.blocks += self.pool.take_new(max(0, blocks_for(end) - len(request.blocks)))
        self.publish(request, min(end, request.known))

    def publish(self, request: RequestState, tokens: int) -> None:
        """Enter the full blocks of the first `tokens` tokens, generated ones too [cache_blocks]."""
        full = tokens // BLOCK_TOKENS
        for i in range(request.hashed, full):
            self.pool.enter(request.blocks[i], request.chain[i])
        request.hashed = max(request.hashed, full)

    def preempt(self, request: RequestState) -> None:
        """Give back all blocks and start over from the head of the queue; output tokens are kept."""
        self.release(request)
        request.computed = request.on_the_way = 0
        request.running = False
        self.waiting.appendleft(request)

    def release(self, request: RequestState) -> None:
        """Give back all blocks."""
        self.pool.give_back(request.blocks)
        request.blocks, request.hashed = [], 0

    def advance(self, step: Step) -> Scheduled:
        """Count granted tokens as computed; whoever has then computed all it has will return a token."""
        granted, scheduled = dict(step.scheduled), Scheduled()
        for request in self.running:
            if request.index not in granted:
                continue
            request.computed += granted[request.index]
            samples = request.computed >= request.known + request.on_the_way
            request.on_the_way += samples
            scheduled.samples.append((request, samples))
        return scheduled

    def process(self, step: Step, scheduled: Scheduled) -> None:
        """Returned tokens; finished requests give back their blocks in the step's order [update_from_output]."""
        for request, sampled in scheduled.samples:
            if not sampled:
                continue
            request.known += 1
            request.on_the_way = max(0, request.on_the_way - 1)
            if request.running and self.lag:
                self.publish(request, request.computed - request.on_the_way)
            if request.known >= min(request.prompt + request.output, self.switches.max_model_len):
                step.finished.append(request.index)
                self.release(request)
                (self.running if request.running else self.waiting).remove(request)
