"""Every setting FlashVector knows, declared once. A setting without a real mechanism does not exist."""

from stack.errors import UnknownSettingError
from stack.layer import Layer
from stack.setting import Effect, Scope, Setting, SettingClass, Value

POLICIES = ("round_robin", "least_connections", "least_outstanding_tokens", "session_hash", "prefix_aware")
PROFILES = ("default", "eager", "no_speculation", "fp8_kv")
UNLIMITED = 1_000_000.0
"""Stands for 'no limit' in caps and queue limits."""

_A, _C = SettingClass.A, SettingClass.C

SETTINGS: tuple[Setting, ...] = (
    Setting(
        name="routing_weight",
        layer=Layer.ROUTING,
        scope=Scope.REPLICA,
        unit="points",
        setting_class=_A,
        low=0,
        high=256,
        default=100.0,
        step_ratio=0.5,
        step_min=10,
        mechanism="HAProxy runtime socket: set server BACKEND/SERVER weight N",
        raising=frozenset({Effect.MOVES_TRAFFIC}),
        lowering=frozenset({Effect.MOVES_TRAFFIC, Effect.PROTECTS}),
    ),
    Setting(
        name="replica_state",
        layer=Layer.ROUTING,
        scope=Scope.REPLICA,
        unit="state",
        setting_class=_A,
        choices=("ready", "drain"),
        default="ready",
        mechanism="HAProxy runtime socket: set server BACKEND/SERVER state S",
        raising=frozenset({Effect.MOVES_TRAFFIC}),
        lowering=frozenset({Effect.MOVES_TRAFFIC}),
    ),
    Setting(
        name="replica_concurrency_cap",
        layer=Layer.ROUTING,
        scope=Scope.REPLICA,
        unit="requests",
        setting_class=_A,
        low=1,
        high=UNLIMITED,
        default=UNLIMITED,
        step_ratio=0.5,
        mechanism="HAProxy runtime socket: set maxconn server BACKEND/SERVER N",
        raising=frozenset({Effect.RELIEVES_QUEUE, Effect.RAISES_MEMORY, Effect.RAISES_LATENCY}),
        lowering=frozenset({Effect.LOWERS_MEMORY, Effect.PROTECTS}),
    ),
    Setting(
        name="routing_policy",
        layer=Layer.ROUTING,
        scope=Scope.POOL,
        unit="policy",
        setting_class=_A,
        choices=POLICIES,
        default="round_robin",
        mechanism="HAProxy map choosing one backend per policy",
        raising=frozenset({Effect.MOVES_TRAFFIC}),
        lowering=frozenset({Effect.MOVES_TRAFFIC}),
    ),
    Setting(
        name="queue_limit_requests",
        layer=Layer.ROUTING,
        scope=Scope.POOL,
        unit="requests per replica",
        setting_class=_A,
        low=1,
        high=UNLIMITED,
        default=UNLIMITED,
        step_ratio=None,
        mechanism="HAProxy map compared with the requests that wait; 503 with Retry-After above it",
        raising=frozenset({Effect.RAISES_LATENCY}),
        lowering=frozenset({Effect.SHEDS_LOAD, Effect.PROTECTS}),
    ),
    Setting(
        name="deadline_shedding_ratio",
        layer=Layer.ROUTING,
        scope=Scope.POOL,
        unit="share of the TTFT limit",
        setting_class=_A,
        low=0.1,
        high=UNLIMITED,
        default=UNLIMITED,
        step_ratio=None,
        step_min=0.05,
        integral=False,
        mechanism="HAProxy map compared with the wait that measured completions promise; 503 with Retry-After above it",
        raising=frozenset({Effect.RAISES_LATENCY}),
        lowering=frozenset({Effect.SHEDS_LOAD, Effect.PROTECTS}),
    ),
    Setting(
        name="priority_policy",
        layer=Layer.ROUTING,
        scope=Scope.POOL,
        unit="policy",
        setting_class=_A,
        choices=("fcfs", "class", "short_first", "class_short_first"),
        default="fcfs",
        mechanism="HAProxy: http-request set-priority-class from a map; vLLM scheduling policy priority",
    ),
    Setting(
        name="batch_in_flight_cap",
        layer=Layer.ROUTING,
        scope=Scope.POOL,
        unit="batch requests per replica",
        setting_class=_A,
        low=1,
        high=UNLIMITED,
        default=UNLIMITED,
        step_ratio=None,
        mechanism="HAProxy runtime socket: maxconn of the servers of a backend for batch requests",
        raising=frozenset({Effect.RELIEVES_QUEUE, Effect.RAISES_MEMORY}),
        lowering=frozenset({Effect.PROTECTS}),
    ),
    Setting(
        name="running_request_cap",
        layer=Layer.BATCHING,
        scope=Scope.REPLICA,
        unit="requests",
        setting_class=_A,
        low=1,
        high=4096,
        default=1024.0,
        step_ratio=1.0,
        step_min=16,
        mechanism="vLLM scheduler plugin, between two engine steps; never above --max-num-seqs",
        raising=frozenset({Effect.RELIEVES_QUEUE, Effect.RAISES_MEMORY, Effect.RAISES_LATENCY}),
        lowering=frozenset({Effect.LOWERS_MEMORY, Effect.PROTECTS}),
    ),
    Setting(
        name="tokens_per_step",
        layer=Layer.BATCHING,
        scope=Scope.REPLICA,
        unit="tokens",
        setting_class=_A,
        low=64,
        high=32768,
        default=8192.0,
        step_ratio=1.0,
        mechanism="vLLM scheduler plugin, between two engine steps; never above --max-num-batched-tokens",
        raising=frozenset({Effect.RAISES_LATENCY}),
        lowering=frozenset(),
    ),
    Setting(
        name="long_prefill_threshold_tokens",
        layer=Layer.BATCHING,
        scope=Scope.REPLICA,
        unit="tokens",
        setting_class=_A,
        low=0,
        high=32768,
        default=0.0,
        step_ratio=None,
        mechanism="vLLM scheduler plugin, between two engine steps; 0 switches it off",
    ),
    Setting(
        name="usable_kv_blocks_ratio",
        layer=Layer.CACHE,
        scope=Scope.REPLICA,
        unit="share of the KV blocks",
        setting_class=_A,
        low=0.02,
        high=1.0,
        default=1.0,
        step_ratio=1.0,
        step_min=0.5,
        integral=False,
        mechanism="vLLM scheduler plugin holds blocks of the preallocated pool back; that evicts cached prefixes",
        raising=frozenset({Effect.RELIEVES_QUEUE}),
        lowering=frozenset({Effect.EVICTS_CACHE}),
    ),
    Setting(
        name="execution_profile",
        layer=Layer.EXECUTION,
        scope=Scope.REPLICA,
        unit="profile",
        setting_class=_C,
        choices=PROFILES,
        default="default",
        mechanism="rolling restart, one replica at a time",
    ),
    Setting(
        name="worker_generation",
        layer=Layer.MEMORY,
        scope=Scope.REPLICA,
        unit="restarts",
        setting_class=_C,
        low=0,
        high=UNLIMITED,
        default=0.0,
        step_ratio=None,
        mechanism="drain, restart the worker, ready; only at low traffic with an empty queue",
    ),
)

_BY_NAME = {setting.name: setting for setting in SETTINGS}


def in_words(value: Value) -> str:
    """A setting's value as a person writes it."""
    if isinstance(value, str):
        return value
    return "no limit" if value >= UNLIMITED else f"{value:g}"


def setting_named(name: str) -> Setting:
    """The declaration called `name`.

    Raises:
        UnknownSettingError: there is none; the text lists those that exist.
    """
    if name not in _BY_NAME:
        raise UnknownSettingError(f"no setting {name!r}; known settings are {', '.join(sorted(_BY_NAME))}")
    return _BY_NAME[name]
