"""A reading: one scrape or log line of one replica, under canonical names, whatever version or source it came from."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from stack.outside_text import name_of
from stack.redaction import clean
from stack.setting import Value

GATEWAY = "gateway"
"""Replica name of a reading that describes the gateway as a whole."""


class View(StrEnum):
    """Who counted. The same replica seen by its engine and by the gateway are two series of readings."""

    ENGINE = "engine"
    GATEWAY = "gateway"


class Gauge(StrEnum):
    """Instant values."""

    RUNNING = "running"
    WAITING = "waiting"
    KV_USAGE_RATIO = "kv_usage_ratio"
    GATEWAY_QUEUE = "gateway_queue"
    GATEWAY_SESSIONS = "gateway_sessions"
    GATEWAY_WEIGHT = "gateway_weight"
    GATEWAY_LIMIT = "gateway_limit"
    UP = "up"
    DEVICE_FREE_BYTES = "device_free_bytes"
    DEVICE_TOTAL_BYTES = "device_total_bytes"
    FRAGMENTATION_RATIO = "fragmentation_ratio"
    # rates that an engine log line states as averages over its own interval
    PROMPT_TOKENS_PER_S = "prompt_tokens_per_s"
    GENERATION_TOKENS_PER_S = "generation_tokens_per_s"
    LOGGED_PREFIX_HIT_RATIO = "logged_prefix_hit_ratio"


class Counter(StrEnum):
    """Values that only grow, except at a restart."""

    PREEMPTIONS = "preemptions"
    PROMPT_TOKENS = "prompt_tokens"
    GENERATION_TOKENS = "generation_tokens"
    PREFIX_QUERIED_TOKENS = "prefix_queried_tokens"
    PREFIX_HIT_TOKENS = "prefix_hit_tokens"
    FINISHED = "finished"
    ABORTED = "aborted"
    ERRORS = "errors"
    SHED = "shed"
    ARRIVED = "arrived"
    DRAFTS = "drafts"
    DRAFTED_TOKENS = "drafted_tokens"
    ACCEPTED_TOKENS = "accepted_tokens"


class Distribution(StrEnum):
    """Histograms."""

    TTFT_S = "ttft_s"
    ITL_S = "itl_s"
    E2E_S = "e2e_s"
    QUEUE_S = "queue_s"
    PREFILL_S = "prefill_s"
    DECODE_S = "decode_s"
    PROMPT_TOKENS = "prompt_tokens_per_request"
    OUTPUT_TOKENS = "output_tokens_per_request"
    STEP_TOKENS = "tokens_per_step"


@dataclass(frozen=True)
class Histogram:
    """Cumulative counts, as Prometheus has them.

    Attributes:
        bounds: upper bounds, ascending; the last is infinity.
        cumulative: observations at or below each bound, same length.
        total: sum of all observations, in the unit of the distribution.
    """

    bounds: tuple[float, ...]
    cumulative: tuple[float, ...]
    total: float

    @property
    def count(self) -> float:
        """Number of observations."""
        return self.cumulative[-1] if self.cumulative else 0.0


@dataclass(frozen=True)
class Reading:
    """One scrape of one replica. Its texts came from outside: the name has a name's form, the rest is plain.

    Attributes:
        replica: the replica's name, or `GATEWAY`.
        time_s: when it was taken, seconds since the epoch; None when the source carries no time.
        configuration: what the engine says of itself.
        prefixes: most reused prefixes as (prefix id, cached tokens, hits since start), where the source tells.
        view: who counted; a replica's engine and gateway readings are never subtracted from each other.
        origin: file or address it came from, for messages; empty when there is none.
        warnings: what was left out or odd about it, one line each.
    """

    replica: str
    time_s: float | None
    gauges: Mapping[Gauge, float] = field(default_factory=dict)
    counters: Mapping[Counter, float] = field(default_factory=dict)
    histograms: Mapping[Distribution, Histogram] = field(default_factory=dict)
    configuration: Mapping[str, Value] = field(default_factory=dict)
    prefixes: tuple[tuple[str, int, int], ...] = ()
    view: View = View.ENGINE
    origin: str = ""
    warnings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Make the texts harmless before anybody sees them."""
        object.__setattr__(self, "replica", name_of(self.replica))
        object.__setattr__(self, "configuration", {key: _told(key, one) for key, one in self.configuration.items()})
        object.__setattr__(self, "origin", clean(self.origin))
        object.__setattr__(self, "warnings", tuple(map(clean, self.warnings)))


def _told(key: str, value: Value) -> Value:
    """What an engine says of itself; its model and GPU are names, which people read in sentences of ours."""
    if not isinstance(value, str):
        return value
    return name_of(value) if key in ("model_name", "gpu") else clean(value)
