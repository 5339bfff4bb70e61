"""A snapshot: facts over one window, frozen, each with its age and trend."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from stack.reading import Distribution, Histogram
from stack.setting import Value

FLEET = "fleet"
"""Target name of a claim or change that concerns all replicas of the pool."""


class Signal(StrEnum):
    """What can be known about a replica or the fleet.

    Counts are increases within the window, never lifetime counters.
    """

    # load
    RUNNING = "running_requests"
    WAITING = "waiting_requests"
    GATEWAY_QUEUE = "gateway_queue_requests"
    ARRIVED = "arrived_requests"
    FINISHED = "finished_requests"
    ABORTED = "aborted_requests"
    SHED = "shed_requests"
    ERRORS = "error_responses"
    PROMPT_TOKENS = "prompt_tokens"
    GENERATION_TOKENS = "generation_tokens"
    PROMPT_TOKENS_MEAN = "prompt_tokens_mean"
    OUTPUT_TOKENS_MEAN = "output_tokens_mean"
    PROMPT_TOKENS_P95 = "prompt_tokens_p95"
    OUTPUT_TOKENS_P95 = "output_tokens_p95"
    # KV and prefix cache
    KV_USAGE_RATIO = "kv_usage_ratio"
    PREEMPTIONS = "preemptions"
    PREFIX_HIT_RATIO = "prefix_hit_ratio"
    PREFIX_QUERIED_TOKENS = "prefix_queried_tokens"
    # latency
    TTFT_MEAN_S = "ttft_mean_s"
    TTFT_P50_S = "ttft_p50_s"
    TTFT_P95_S = "ttft_p95_s"
    TTFT_P99_S = "ttft_p99_s"
    ITL_MEAN_S = "itl_mean_s"
    ITL_P50_S = "itl_p50_s"
    ITL_P95_S = "itl_p95_s"
    ITL_P99_S = "itl_p99_s"
    E2E_MEAN_S = "e2e_mean_s"
    E2E_P50_S = "e2e_p50_s"
    E2E_P95_S = "e2e_p95_s"
    E2E_P99_S = "e2e_p99_s"
    QUEUE_MEAN_S = "queue_mean_s"
    QUEUE_P95_S = "queue_p95_s"
    PREFILL_MEAN_S = "prefill_mean_s"
    # execution
    STEP_TOKENS_MEAN = "step_tokens_mean"
    DRAFTED_TOKENS = "drafted_tokens"
    DRAFT_ACCEPT_RATIO = "draft_accept_ratio"
    # gateway view of a replica
    ROUTING_WEIGHT = "gateway_weight"
    UP = "up"
    GATEWAY_SESSIONS = "gateway_sessions"
    # memory
    DEVICE_FREE_BYTES = "device_free_bytes"
    DEVICE_TOTAL_BYTES = "device_total_bytes"
    FRAGMENTATION_RATIO = "memory_fragmentation_ratio"


@dataclass(frozen=True)
class Fact:
    """One measured value.

    Attributes:
        value: at the end of the window for a gauge; over the window for an increase, ratio or quantile.
        start: the same at the window's start (gauge), or over its first half (others); None when unknown.
        peak: largest gauge value seen in the window; None for what is not a gauge.
        age_s: age of the newest sample behind it; None when the source carries no time.
        trend_per_min: change per minute across the window; None when the window's length is unknown.
    """

    value: float
    start: float | None = None
    peak: float | None = None
    age_s: float | None = None
    trend_per_min: float | None = None


@dataclass(frozen=True)
class Missing:
    """A signal that could not be read, and what cannot be diagnosed without it."""

    signal: str
    target: str
    reason: str
    costs: str


Facts: TypeAlias = Mapping[Signal, Fact]


class Oddity(StrEnum):
    """Why what was counted of a target within the window is not one sound series."""

    RESTARTED = "its counters began anew within the window, which a restart does"
    DUPLICATED = "two sources answer under its name: samples are out of order, twice for one moment, or count apart"
    AHEAD = "its newest sample is later than the window's end: two clocks run apart"


def least_of(setting: str) -> str:
    """Under which name a replica's configuration tells the lowest value its engine takes."""
    return f"{setting}_least"


def most_of(setting: str) -> str:
    """Under which name a replica's configuration tells the highest value its engine takes."""
    return f"{setting}_most"


@dataclass(frozen=True)
class Snapshot:
    """Facts over one window.

    Attributes:
        time_s: end of the window, seconds since the epoch (stack time); None for files that carry no time.
        window_s: length of the window; None when unknown, 0 for a single scrape.
        scrapes: number of scrapes or log lines behind it, the fewest of any replica that has two or more; else 1 or 0.
        replicas: facts per replica.
        fleet: facts over all replicas: sums of counts, request-weighted means, quantiles of merged histograms.
        distributions: histograms of what was observed in the window over all replicas.
        lifetime: values since process start from a single scrape; for claims about configuration, never about load.
        configuration: what the engine says of itself per replica (block_size, num_kv_blocks, prefix_caching ...).
        settings: value in force per setting and target, where the source tells.
        missing: signals that could not be read.
        warnings: what was odd about the input (counter reset, reordered scrapes), one line each.
        prefixes: most reused prefixes per replica as (prefix id, cached tokens, hits in the window), best first.
        oddities: replicas, and the gateway, whose series is not sound, and why.
    """

    time_s: float | None
    window_s: float | None
    scrapes: int
    replicas: Mapping[str, Facts]
    fleet: Facts
    distributions: Mapping[Distribution, Histogram] = field(default_factory=dict)
    lifetime: Mapping[str, Facts] = field(default_factory=dict)
    configuration: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)
    settings: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)
    missing: tuple[Missing, ...] = ()
    warnings: tuple[str, ...] = ()
    prefixes: Mapping[str, tuple[tuple[str, int, int], ...]] = field(default_factory=dict)
    oddities: Mapping[str, Oddity] = field(default_factory=dict)

    def begins_before(self, time_s: float) -> bool:
        """Whether its window is known and begins before `time_s`, rounding aside."""
        if self.time_s is None or self.window_s is None:
            return False
        return self.time_s - self.window_s < time_s - 1e-6

    def value(self, signal: Signal, target: str = FLEET) -> float | None:
        """The value of `signal` on a replica or the fleet, or None when it was not measured."""
        fact = self.fact(signal, target)
        return None if fact is None else fact.value

    def fact(self, signal: Signal, target: str = FLEET) -> Fact | None:
        """The fact behind `signal` on a replica or the fleet, or None when it was not measured."""
        facts = self.fleet if target == FLEET else self.replicas.get(target, {})
        return facts.get(signal)

    def per_s(self, signal: Signal, target: str = FLEET) -> float | None:
        """Rate of a counted signal, per second; None when the count or the window's length is unknown."""
        count = self.value(signal, target)
        return None if count is None or not self.window_s else count / self.window_s

    def span(self, setting: str, target: str) -> tuple[float | None, float | None]:
        """Lowest and highest value that the engines behind `target` take as they were started; None where untold."""
        names = self.replicas if target == FLEET else (target,)
        told = [self.configuration.get(name, {}) for name in names]
        lows = [float(one[least_of(setting)]) for one in told if least_of(setting) in one]
        highs = [float(one[most_of(setting)]) for one in told if most_of(setting) in one]
        return max(lows, default=None), min(highs, default=None)
