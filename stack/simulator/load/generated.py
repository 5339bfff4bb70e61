"""Generated traffic: Poisson arrivals at a rate that is steady, ramps or spikes, with chat-like lengths."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from stack.simulator.load.traffic import CHUNK_TOKENS, Traffic, plain

RateShape = Callable[[NDArray[np.float64]], NDArray[np.float64]]
"""Requests per second at given times."""


def steady(rate_per_s: float, duration_s: float, *, seed: int, lengths: Traffic | None = None) -> Traffic:
    """The same rate throughout."""
    return poisson(lambda t: np.full(len(t), rate_per_s), rate_per_s, duration_s, seed=seed, lengths=lengths)


def ramp(
    low_per_s: float, high_per_s: float, duration_s: float, *, seed: int, lengths: Traffic | None = None
) -> Traffic:
    """Up from `low_per_s` to `high_per_s` in the middle and down again."""

    def rate(t: NDArray[np.float64]) -> NDArray[np.float64]:
        return low_per_s + (high_per_s - low_per_s) * (1 - np.abs(2 * t / duration_s - 1))

    return poisson(rate, high_per_s, duration_s, seed=seed, lengths=lengths)


def spike(
    base_per_s: float,
    peak_per_s: float,
    duration_s: float,
    *,
    seed: int,
    spike_s: float = 45.0,
    spikes: int = 2,
    lengths: Traffic | None = None,
) -> Traffic:
    """A base rate with `spikes` bursts of `spike_s` at `peak_per_s`, at random times after the first tenth."""
    starts = np.random.default_rng(seed + 1).uniform(0.1 * duration_s, max(0.1, 0.9) * duration_s, spikes)

    def rate(t: NDArray[np.float64]) -> NDArray[np.float64]:
        inside = ((t[:, None] >= starts) & (t[:, None] < starts + spike_s)).any(axis=1)
        return np.where(inside, peak_per_s, base_per_s)

    return poisson(rate, max(peak_per_s, base_per_s), duration_s, seed=seed, lengths=lengths)


def poisson(
    rate: RateShape, highest_per_s: float, duration_s: float, *, seed: int, lengths: Traffic | None = None
) -> Traffic:
    """Poisson arrivals of a varying rate, by thinning.

    Args:
        lengths: traffic from which prompt and output lengths are drawn together; chat-like log-normal ones if None.
    """
    rng = np.random.default_rng(seed)
    n = rng.poisson(highest_per_s * duration_s)
    times = np.sort(rng.random(n) * duration_s)
    times = times[rng.random(n) * highest_per_s < rate(times)]
    prompts, outputs = _drawn(lengths, len(times), rng) if lengths is not None else _chat(len(times), rng)
    return plain(times, prompts, outputs)


def with_shared_prefixes(traffic: Traffic, *, prefixes: int, chunks: int, seed: int, skew: float = 1.0) -> Traffic:
    """The same arrivals, each prompt preceded by one of `prefixes` shared ones of `chunks` chunks, Zipf distributed."""
    rng = np.random.default_rng(seed)
    share = 1 / np.arange(1, prefixes + 1) ** skew
    owner = rng.choice(prefixes, len(traffic), p=share / share.sum())
    return replace(
        traffic,
        prompt_tokens=traffic.prompt_tokens + chunks * CHUNK_TOKENS,
        session=owner,
        chain_start=owner * chunks,
        chain_length=np.full(len(traffic), chunks, dtype=np.int64),
        chains=np.arange(prefixes * chunks, dtype=np.int64),
    )


def _drawn(lengths: Traffic, n: int, rng: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    index = rng.integers(len(lengths), size=n)
    return lengths.prompt_tokens[index], lengths.output_tokens[index]


def _chat(n: int, rng: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Medians of 900 and 130 tokens, near those of the public Azure chat trace of 2023."""
    prompts = np.clip(rng.lognormal(np.log(900), 0.8, n), 16, 14_000).astype(np.int64)
    outputs = np.clip(rng.lognormal(np.log(130), 0.8, n), 2, 1_000).astype(np.int64)
    return prompts, outputs
