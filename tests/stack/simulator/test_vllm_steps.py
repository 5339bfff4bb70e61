"""Recorded steps of vLLM's own scheduler, and the plain description of its rules that must reproduce each of them."""

from collections import Counter

import pytest
from vllm_reference import ReferenceEngine
from vllm_traces import BLOCK_TOKENS, Step, Trace, load, random_trace

HEADER, TRACES = load()
STRESSES = (
    "preemption", "prefix_hit", "hits_of_three_depths", "full_hit", "hit_on_freed_blocks", "eviction",
    "miss_by_eviction", "cut_by_budget", "cut_by_threshold", "running_cap", "burst", "gap", "one_token_output",
    "prompt_longer_than_budget", "waiting_for_blocks", "generated_tokens_hit", "duplicate_blocks", "resumed_hit",
)  # fmt: skip


def replay(trace: Trace) -> list[Step]:
    """Steps of the reference on the requests of a trace, as many as were recorded."""
    engine, steps, arrived = ReferenceEngine(trace), [], 0
    for k in range(len(trace.steps)):
        while arrived < len(trace.requests) and trace.requests[arrived].arrival_step <= k:
            request = trace.requests[arrived]
            engine.add(arrived, request.prompt_tokens, request.output_tokens, request.chain)
            arrived += 1
        steps.append(engine.step())
    return steps


@pytest.mark.parametrize("lag", [0, 1])
def test_the_reference_takes_every_recorded_step(lag: int) -> None:
    traces = [(i, trace) for i, trace in enumerate(TRACES) if trace.lag == lag]
    assert traces
    for i, trace in traces:
        for k, (found, recorded) in enumerate(zip(replay(trace), trace.steps, strict=True)):
            assert found == recorded, f"trace {i}, step {k}"


def test_every_request_finishes_once_and_gets_all_its_tokens() -> None:
    for trace in TRACES:
        finished = Counter(one for step in trace.steps for one in step.finished)
        assert finished == Counter(range(len(trace.requests)))
        for step in trace.steps:
            assert sum(tokens for _, tokens in step.scheduled) <= trace.configuration.max_num_batched_tokens


def test_the_traces_are_those_of_their_seeds() -> None:
    for i, trace in enumerate(TRACES):
        made = random_trace(HEADER["seed"] + i, trace.lag)
        assert (made.configuration, made.requests) == (trace.configuration, trace.requests)


def test_the_same_id_means_the_same_tokens_up_to_there() -> None:
    for trace in TRACES:
        before: dict[int, tuple[int, ...]] = {}
        for request in trace.requests:
            assert len(request.chain) == -(-(request.prompt_tokens + request.output_tokens) // BLOCK_TOKENS)
            for n, block in enumerate(request.chain):
                assert before.setdefault(block, request.chain[:n]) == request.chain[:n]


def test_the_header_counts_the_kinds_and_each_is_frequent() -> None:
    for lag, name in ((0, "sync"), (1, "async")):
        traces = [trace for trace in TRACES if trace.lag == lag]
        counts = Counter(kind for trace in traces for kind in trace.kinds)
        assert HEADER[name] == {"traces": len(traces), **counts}
    assert all(HEADER["sync"][kind] >= 60 for kind in STRESSES)
