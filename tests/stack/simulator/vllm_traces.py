"""Short random traces for an engine under stress, and the types of the fixture `tests/data/vllm_steps.json.gz`.

A request's tokens, prompt and output alike, are given as a chain of block ids: token `i` is
`chain[i // 16] * 16 + i % 16`.
Ids are made so that two requests share an id only where they share every token before it as well.
"""

import gzip
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

BLOCK_TOKENS = 16
FIXTURE = Path(__file__).parents[2] / "data" / "vllm_steps.json.gz"


@dataclass(frozen=True)
class Configuration:
    """vLLM's switches under their own names. One of `num_blocks` is vLLM's null block, so that one less can be used."""

    num_blocks: int
    max_num_seqs: int
    max_num_batched_tokens: int
    max_model_len: int
    max_num_active_seqs: int | None = None
    long_prefill_token_threshold: int = 0
    long_prefill_token_threshold_adaptive: bool = False
    enable_chunked_prefill: bool = True
    enable_prefix_caching: bool = True
    scheduler_reserve_full_isl: bool = True
    watermark: float = 0.0


@dataclass(frozen=True)
class TracedRequest:
    """A request that joins the queue before step `arrival_step`; its tokens are spelled by `chain`."""

    arrival_step: int
    prompt_tokens: int
    output_tokens: int
    chain: tuple[int, ...]

    def token(self, position: int) -> int:
        """Token id at a position of prompt and output together."""
        return self.chain[position // BLOCK_TOKENS] * BLOCK_TOKENS + position % BLOCK_TOKENS


@dataclass
class Step:
    """What one engine step did; requests are named by their index in the trace.

    Attributes:
        scheduled: (request, tokens) in vLLM's order.
        preempted: in the order in which they were preempted.
        hits: (request, tokens found in the prefix cache) of those admitted in this step, resumed ones too.
        finished: requests whose last token was processed at the end of this step.
        free_blocks: after scheduling, and at the end of the step.
    """

    scheduled: list[tuple[int, int]] = field(default_factory=list)
    preempted: list[int] = field(default_factory=list)
    hits: list[tuple[int, int]] = field(default_factory=list)
    finished: list[int] = field(default_factory=list)
    free_blocks: tuple[int, int] = (0, 0)


@dataclass
class Trace:
    """One run. `lag`: steps scheduled before a step's output is known, 0, or 1 with async scheduling."""

    lag: int
    configuration: Configuration
    requests: list[TracedRequest]
    steps: list[Step] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)


def random_trace(seed: int, lag: int) -> Trace:
    """A trace without steps; every request fits into an empty engine."""
    draw = random.Random(seed)
    configuration = _configuration(draw)
    return Trace(lag, configuration, _requests(draw, configuration))


def _configuration(draw: random.Random) -> Configuration:
    batched = draw.choice([32, 48, 64, 96, 128, 200, 256])
    chunked = draw.random() > 0.08
    max_model_len = draw.choice([192, 256, 400]) if chunked else draw.choice([128, 192])
    seqs = draw.choice([2, 3, 4, 6, 8, 12, 16])
    usual = draw.random() < 0.75
    return Configuration(
        num_blocks=draw.choice([14, 16, 18, 20, 24, 28, 36, 60]),
        max_num_seqs=seqs,
        max_num_batched_tokens=batched if chunked else max_model_len,
        max_model_len=max_model_len,
        max_num_active_seqs=None if usual or draw.random() < 0.7 else max(1, seqs - 1),
        long_prefill_token_threshold=draw.choice([16, 20, 32, 40, 64]) if draw.random() < 0.6 else 0,
        long_prefill_token_threshold_adaptive=not usual and draw.random() < 0.3,
        enable_chunked_prefill=chunked,
        enable_prefix_caching=draw.random() > 0.08,
        scheduler_reserve_full_isl=usual or draw.random() < 0.4,
        watermark=0.0 if usual or draw.random() < 0.5 else draw.choice([0.05, 0.1, 0.2]),
    )


def _requests(draw: random.Random, configuration: Configuration) -> list[TracedRequest]:
    """Bursts and gaps of requests that repeat, branch off or continue earlier ones, or are new."""
    longest = min(configuration.max_model_len, (configuration.num_blocks - 1) * BLOCK_TOKENS)
    requests: list[TracedRequest] = []
    fresh, step = iter(range(1, 1_000_000)), 0
    count = draw.randint(8, 22)
    while len(requests) < count:
        for _ in range(draw.choice([1, 1, 2, 3, 5])):
            requests.append(_request(draw, requests, fresh, step, longest))
        step += draw.choice([0, 1, 2, 3, 6, 12, 45]) if draw.random() < 0.85 else 70
    return requests


def _request(
    draw: random.Random, earlier: list[TracedRequest], fresh: Iterator[int], step: int, longest: int
) -> TracedRequest:
    output = 1 if draw.random() < 0.12 else draw.randint(2, 40)
    prompt = min(draw.choice([draw.randint(1, 60), draw.randint(40, 150), draw.randint(100, 260)]), longest - output)
    if draw.random() < 0.4 and prompt >= BLOCK_TOKENS:
        prompt -= prompt % BLOCK_TOKENS
    shared: tuple[int, ...] = ()
    if earlier and draw.random() < 0.7:
        other = draw.choice(earlier)
        kind = draw.random()
        if kind < 0.35:
            prompt, shared = min(other.prompt_tokens, longest - output), other.chain
        elif kind < 0.6:
            prompt = min(other.prompt_tokens + other.output_tokens + draw.randint(0, 20), longest - output)
            shared = other.chain
        else:
            shared = other.chain[: draw.randint(1, len(other.chain))]
    blocks = -(-(prompt + output) // BLOCK_TOKENS)
    chain = shared[:blocks] + tuple(next(fresh) for _ in range(blocks - len(shared)))
    return TracedRequest(step, prompt, output, chain)


def save(traces: list[Trace], header: dict[str, Any], path: Path = FIXTURE) -> None:
    """Write compact JSON, the same bytes for the same traces."""
    text = json.dumps({**header, "traces": [_plain(trace) for trace in traces]}, separators=(",", ":"))
    path.write_bytes(gzip.compress(text.encode(), mtime=0))


def load(path: Path = FIXTURE) -> tuple[dict[str, Any], list[Trace]]:
    """The header (what made the traces, how many show what) and the traces."""
    header = json.loads(gzip.decompress(path.read_bytes()))
    return header, [_trace(plain) for plain in header.pop("traces")]


def _plain(trace: Trace) -> dict[str, Any]:
    requests = [[r.arrival_step, r.prompt_tokens, r.output_tokens, r.chain] for r in trace.requests]
    steps = [{name: value for name, value in vars(step).items() if value} for step in trace.steps]
    switches = vars(trace.configuration)
    return {
        "lag": trace.lag, "kinds": trace.kinds, "configuration": switches, "requests": requests, "steps": steps,
    }  # fmt: skip


def _trace(plain: dict[str, Any]) -> Trace:
    return Trace(
        plain["lag"],
        Configuration(**plain["configuration"]),
        [TracedRequest(arrival, prompt, output, tuple(chain)) for arrival, prompt, output, chain in plain["requests"]],
        [_step(step) for step in plain["steps"]],
        plain["kinds"],
    )


def _step(plain: dict[str, Any]) -> Step:
    pairs = {name: [(pair[0], pair[1]) for pair in plain.get(name, [])] for name in ("scheduled", "hits")}
    first, last = plain["free_blocks"]
    return Step(
        **pairs, preempted=plain.get("preempted", []), finished=plain.get("finished", []), free_blocks=(first, last)
    )
