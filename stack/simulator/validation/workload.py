"""The traffic of a measured row, as far as its file describes it."""

import re
from dataclasses import replace

import numpy as np

from stack.simulator.hardware.gpu import BLOCK_TOKENS
from stack.simulator.load.traffic import Traffic, closed_loop, plain
from stack.simulator.validation.case import Case

REQUESTS_PER_USER = 10
"""As the public benchmark scripts of the closed-loop rows send (num_prompts = 10 x concurrency), the first at once."""
FEWEST_REQUESTS = 40
LENGTH_SPREAD = 0.1
"""Outputs of exact length lock simulated users into cohorts that real ones leave soon; so they vary by this share."""
PAUSE_S = 0.01
"""Mean of a user's exponential pause between two requests: connection, client code."""
STAGE_S = 600.0
"""Length of an open-loop stage in the public profiles of these runs."""
MOST_REQUESTS = 50_000
"""Of an open loop; a higher rate is offered for less time."""
WARM_UP_GAP_S = 2.0
"""Time between the requests that fill the prefix cache before a later stage."""

_RANDOM_LENGTHS = re.compile(r"lengths in \[(\d*\.?\d+), ?(\d*\.?\d+)\]")
_DISTINCT = re.compile(r"(\d+) distinct prompts")
_STAGE = re.compile(r"stage_(\d+)_")


def workload(case: Case, seed: int = 0) -> tuple[Traffic, int]:
    """The requests, and how many of them come before those that count."""
    return (_constant_rate(case), _warm_up(case)) if case.row.is_open_loop else (_closed(case, seed), 0)


def _closed(case: Case, seed: int) -> Traffic:
    rng = np.random.default_rng(seed)
    users = max(1, round(case.row.concurrency or 1))
    n = max(users * REQUESTS_PER_USER, FEWEST_REQUESTS)
    prompts, outputs = np.full(n, case.prompt_tokens), np.full(n, float(case.output_tokens))
    if found := _RANDOM_LENGTHS.search(case.row.note):
        low, high = float(found[1]), float(found[2])
        prompts = rng.integers(round(case.prompt_tokens * low), round(case.prompt_tokens * high) + 1, n)
        outputs *= rng.uniform(low, high, n)
    else:
        outputs *= rng.uniform(1 - LENGTH_SPREAD, 1 + LENGTH_SPREAD, n)
    return closed_loop(users, prompts, np.rint(outputs).astype(np.int64), rng.exponential(PAUSE_S, n))


def _constant_rate(case: Case) -> Traffic:
    before, rate = _warm_up(case), case.row.request_rate_per_s or 1.0
    n = round(min(MOST_REQUESTS, max(FEWEST_REQUESTS, rate * STAGE_S)))
    arrival_s = np.concatenate([np.arange(before) * WARM_UP_GAP_S, before * WARM_UP_GAP_S + np.arange(n) / rate])
    traffic = plain(arrival_s, np.full(before + n, case.prompt_tokens), np.full(before + n, case.output_tokens))
    chunks = case.prompt_tokens // BLOCK_TOKENS
    distinct = _distinct(case)
    if not distinct or not chunks:
        return traffic
    return replace(
        traffic,
        chain_start=np.arange(before + n) % distinct * chunks,
        chain_length=np.full(before + n, chunks),
        chains=np.arange(distinct * chunks),
        chunk_tokens=BLOCK_TOKENS,
    )


def _distinct(case: Case) -> int:
    """How many prompts are sent over and over, where prefixes are cached; 0 where every prompt is new."""
    found = _DISTINCT.search(case.row.prefix_caching)
    return int(found[1]) if found and case.row.prefix_caching.startswith("on") else 0


def _warm_up(case: Case) -> int:
    """A later stage of a run finds its prompts in the cache; the first one has to compute each once."""
    stage = _STAGE.search(case.row.source)
    return _distinct(case) if stage and int(stage[1]) > 0 else 0
