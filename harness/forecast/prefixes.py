"""What prompts share, as the reuse of the prefix cache shows it."""

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from stack.simulator.load.generated import with_shared_prefixes
from stack.simulator.load.traffic import CHUNK_TOKENS, Traffic, merged
from stack.snapshot import Signal, Snapshot

USUAL_PREFIXES = 16
"""Assumed where engines do not name the prefixes they reuse."""
MOST_PREFIXES = 400
NEGLIGIBLE_HIT_RATIO = 0.02


@dataclass(frozen=True)
class Prefixes:
    """Shared beginnings of prompts, with Zipf-distributed popularity.

    Attributes:
        count: different ones.
        chunks: length of each in chunks of the simulated cache.
        share: share of the requests that have one.
        hit_ratio: share of prompt tokens found in the cache, as measured.
        known: whether the engines named them, or only the hit ratio was known.
    """

    count: int
    chunks: int
    share: float
    hit_ratio: float
    known: bool

    def attached(self, traffic: Traffic, seed: int) -> Traffic:
        """The same arrivals, of which a share begins with one of the prefixes and is no longer for it."""
        if self.chunks == 0 or self.share <= 0:
            return traffic
        chosen = np.random.default_rng([seed, 5]).random(len(traffic)) < self.share
        own = np.maximum(1, traffic.prompt_tokens - self.chunks * CHUNK_TOKENS)
        index = np.flatnonzero(chosen)
        with_prefix = replace(traffic.take(index, traffic.arrival_s[index]), prompt_tokens=own[index])
        with_prefix = with_shared_prefixes(with_prefix, prefixes=self.count, chunks=self.chunks, seed=seed)
        rest = np.flatnonzero(~chosen)
        return merged(with_prefix, traffic.take(rest, traffic.arrival_s[rest])) if len(rest) else with_prefix

    @property
    def tokens(self) -> int:
        """Length of each in tokens."""
        return self.chunks * CHUNK_TOKENS


def prefixes_of(snapshot: Snapshot, mean_prompt: float) -> Prefixes | None:
    """What the hit ratio and the named prefixes of a snapshot show; None when next to nothing is reused."""
    hit_ratio = snapshot.value(Signal.PREFIX_HIT_RATIO)
    if hit_ratio is None or hit_ratio < NEGLIGIBLE_HIT_RATIO:
        return None
    hits: Counter[str] = Counter()
    tokens: dict[str, int] = {}
    for named in snapshot.prefixes.values():
        for prefix, length, count in named:
            hits[prefix] += count
            tokens[prefix] = max(tokens.get(prefix, 0), length)
    queried = snapshot.value(Signal.PREFIX_QUERIED_TOKENS) or 0.0
    if not hits or queried <= 0:
        return Prefixes(USUAL_PREFIXES, round(hit_ratio * mean_prompt / CHUNK_TOKENS), 1.0, hit_ratio, known=False)
    usual = float(np.average([tokens[prefix] for prefix in hits], weights=list(hits.values())))
    reused = hit_ratio * queried / max(1.0, usual)
    share = min(1.0, reused / max(1.0, queried / max(1.0, mean_prompt)))
    count = _zipf_count(max(hits.values()) / max(1.0, reused))
    return Prefixes(max(count, len(hits)), max(1, round(usual / CHUNK_TOKENS)), share, hit_ratio, known=True)


def _zipf_count(top_share: float) -> int:
    """How many prefixes there are when the most popular one has `top_share` of all uses: 1 / H_n = top_share."""
    harmonic, n = 1.0, 1
    while 1.0 / harmonic > top_share and n < MOST_PREFIXES:
        n += 1
        harmonic += 1.0 / n
    return n
