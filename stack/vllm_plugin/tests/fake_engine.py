"""vLLM's real scheduler, KV cache and requests; only the model is made up, and the order of EngineCore's loop kept.

Each request's token at each place is fixed, so a lost, doubled or swapped token shows.
"""

from collections import deque
from dataclasses import dataclass

import torch
from vllm import SamplingParams
from vllm.config import (
    CacheConfig,
    DeviceConfig,
    ModelConfig,
    ParallelConfig,
    SchedulerConfig,
    SpeculativeConfig,
    VllmConfig,
)
from vllm.utils.hashing import sha256
from vllm.v1.core.kv_cache_utils import get_request_block_hasher
from vllm.v1.kv_cache_interface import FullAttentionSpec, KVCacheConfig, KVCacheGroupSpec
from vllm.v1.outputs import ModelRunnerOutput
from vllm.v1.request import Request, RequestStatus
from vllm.v1.structured_output import StructuredOutputManager

BLOCK = 16
MODEL = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64, "intermediate_size": 64,
    "num_attention_heads": 2, "num_hidden_layers": 1, "vocab_size": 1024, "max_position_embeddings": 4096,
}  # fmt: skip


@dataclass(frozen=True)
class Setup:
    cap: int = 16
    step_tokens: int = 256
    blocks: int = 201
    longest: int = 512
    policy: str = "fcfs"
    chunked: bool = True
    drafts: int = 0
    log_stats: bool = True


def vllm_config(setup, model, asynchronous):
    model_config = ModelConfig(model=str(model), skip_tokenizer_init=True, dtype="float16", max_model_len=setup.longest)
    speculation = {}
    if setup.drafts:
        speculation["speculative_config"] = SpeculativeConfig(
            method="ngram", num_speculative_tokens=setup.drafts, prompt_lookup_max=3,
            target_model_config=model_config, target_parallel_config=ParallelConfig(),
        )  # fmt: skip
    return VllmConfig(
        model_config=model_config,
        scheduler_config=SchedulerConfig(
            is_encoder_decoder=False, async_scheduling=asynchronous, max_model_len=setup.longest, policy=setup.policy,
            max_num_seqs=setup.cap, max_num_batched_tokens=setup.step_tokens, enable_chunked_prefill=setup.chunked,
        ),
        cache_config=CacheConfig(block_size=BLOCK, enable_prefix_caching=True),
        device_config=DeviceConfig("cpu"),
        **speculation,
    )  # fmt: skip


def make_scheduler(setup, model, asynchronous, cls=None):
    from flashvector_vllm.scheduler import TunableAsyncScheduler, TunableScheduler

    config = vllm_config(setup, model, asynchronous and not setup.drafts)
    config.cache_config.num_gpu_blocks = setup.blocks
    spec = FullAttentionSpec(block_size=BLOCK, num_kv_heads=1, head_size=1, dtype=torch.float32)
    return (cls or (TunableAsyncScheduler if asynchronous else TunableScheduler))(
        vllm_config=config,
        kv_cache_config=KVCacheConfig(setup.blocks, [], [KVCacheGroupSpec(["layer"], spec)]),
        structured_output_manager=StructuredOutputManager(config),
        block_size=BLOCK,
        log_stats=setup.log_stats,
    )


class Engine:
    """One scheduler and a made-up model; `lag` steps are scheduled before the oldest is answered."""

    def __init__(self, setup, model, asynchronous=False, lag=0, cls=None):
        self.setup, self.lag = setup, lag
        self.scheduler = make_scheduler(setup, model, asynchronous, cls)
        self.hasher = get_request_block_hasher(BLOCK, sha256)
        self.in_flight, self.asked, self.got, self.outputs = deque(), {}, {}, []
        self.stats = None

    @property
    def tuner(self):
        return self.scheduler.tuner

    @property
    def pool(self):
        return self.scheduler.kv_cache_manager.block_pool

    @property
    def running(self):
        return len(self.scheduler.running)

    def last(self, count=1):
        return self.tuner._steps.last(count)

    def set(self, **change):
        answer = self.tuner.apply(change)
        assert answer["ok"], answer["errors"]
        return answer

    def add(self, prompt, output, shared=False, priority=0):
        name = str(len(self.got))
        self.asked[name], self.got[name] = (prompt, output, shared), []
        self.scheduler.add_request(
            Request(
                request_id=name,
                prompt_token_ids=[self.token(name, place) for place in range(prompt)],
                sampling_params=SamplingParams(ignore_eos=True, max_tokens=output),
                pooling_params=None,
                arrival_time=float(name),
                block_hasher=self.hasher,
                priority=priority,
            )
        )
        return name

    def abort(self, name):
        """A client that hangs up."""
        if name in self.scheduler.requests:
            self.scheduler.finish_requests(name, RequestStatus.FINISHED_ABORTED)
            del self.asked[name]

    def token(self, name, place):
        prompt, _, shared = self.asked[name]
        return (place * 7 if shared and place < prompt else int(name) * 131 + place * 7) % 1000

    def step(self):
        scheduled = self.scheduler.schedule()
        self.outputs.append(scheduled)
        requests = self.scheduler.requests
        computed = {name: requests[name].num_computed_tokens for name in scheduled.num_scheduled_tokens}
        drafts = scheduled.scheduled_spec_decode_tokens
        tokens = [
            [] if requests[name].is_prefill_chunk else [self.token(name, place - len(drafts.get(name, ())))]
            for name, place in computed.items()
        ]
        places = {name: index for index, name in enumerate(computed)}
        output = ModelRunnerOutput(req_ids=list(computed), req_id_to_index=places, sampled_token_ids=tokens)
        self.in_flight.append((scheduled, output))
        if len(self.in_flight) > self.lag:
            self.answer_oldest()
        self.check()
        return scheduled

    def answer_oldest(self):
        for group in self.scheduler.update_from_output(*self.in_flight.popleft()).values():
            self.stats = group.scheduler_stats or self.stats
            for one in group.outputs:
                self.got[one.request_id] += one.new_token_ids

    def steps(self, count):
        for _ in range(count):
            self.step()

    def run_dry(self, most=5000):
        while self.scheduler.get_num_unfinished_requests():
            self.step()
            most -= 1
            assert most, f"requests never end: {self.tuner.state()}"
        while self.in_flight:
            self.answer_oldest()
        self.check()
        self.check_done()

    def check(self):
        """No block is lost or doubled, at any time."""
        taken = sum(block.ref_cnt > 0 for block in self.pool.blocks if not block.is_null)
        assert self.pool.get_num_free_blocks() + taken == self.setup.blocks - 1
        held = self.tuner._held._blocks if hasattr(self.scheduler, "tuner") else []
        assert len({block.block_id for block in held}) == len(held)
        assert all(block.ref_cnt == 1 for block in held)

    def check_done(self):
        """Every request has exactly its tokens, and nothing but held blocks is taken."""
        for name, (prompt, output, _) in self.asked.items():
            assert self.got[name] == [self.token(name, prompt + place) for place in range(output)], name
        held = len(self.tuner._held) if hasattr(self.scheduler, "tuner") else 0
        assert self.pool.get_num_free_blocks() == self.setup.blocks - 1 - held
