"""A stack whose truth is known and changes without warning, behind the same contracts as a real one."""

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from scripted_stack import REPLICAS, ManualClock

from stack.errors import RefusedError, UnknownSettingError, UnreachableError
from stack.setting import Value
from stack.snapshot import FLEET, Fact, Oddity, Signal, Snapshot

START: dict[str, Value] = {
    "routing_weight": 100.0,
    "replica_state": "ready",
    "replica_concurrency_cap": 64.0,
    "running_request_cap": 64.0,
    "tokens_per_step": 2048.0,
    "usable_kv_blocks_ratio": 0.8,
    "execution_profile": "default",
    "worker_generation": 0.0,
}
RUNNING = 24.0
"""Requests that each replica runs."""
POOL: dict[str, Value] = {
    "routing_policy": "round_robin",
    "deadline_shedding_ratio": 1_000_000.0,
    "queue_limit_requests": 64.0,
}


@dataclass(frozen=True)
class Truth:
    """How the stack really is."""

    kv_ratio: dict[str, float]
    waiting: float
    ttft_p99_s: float
    down: frozenset[str]
    stuck: frozenset[str]
    free_bytes: dict[str, float]
    fragmented: frozenset[str]
    speed: float = 1.0

    @property
    def healthy(self) -> frozenset[str]:
        return frozenset(REPLICAS) - self.down - self.stuck


def drawn(rng: random.Random) -> Truth:
    """Mostly calm, sometimes full, queued, slow, or with a replica lost."""

    def some(chance: float) -> frozenset[str]:
        return frozenset(r for r in REPLICAS if rng.random() < chance)

    full, memory = rng.choice([0.1, 0.2, 0.5, 0.8, 0.95]), rng.choice([(8.0,), (8.0,), (1.5, 3.0, 8.0)])
    down = some(rng.choice([0.0, 0.0, 0.3]))
    return Truth(
        kv_ratio={r: min(1.0, full * rng.uniform(0.8, 1.2)) for r in REPLICAS},
        waiting=rng.choice([0.0, 0.0, 5.0, 80.0]),
        ttft_p99_s=rng.choice([0.3, 0.9, 0.96, 3.0]),
        down=down,
        stuck=some(rng.choice([0.0, 0.0, 0.2])) - down,
        free_bytes={r: rng.choice(memory) * 2.0**30 for r in REPLICAS},
        fragmented=some(rng.choice([0.0, 0.5])),
    )


def _aged(seen: Snapshot) -> Snapshot:
    return replace(seen, fleet={s: replace(f, age_s=45.0) for s, f in seen.fleet.items()})


def _without(signal: Signal) -> Callable[[Snapshot], Snapshot]:
    return lambda seen: replace(seen, fleet={s: f for s, f in seen.fleet.items() if s is not signal})


def _with(signal: Signal, value: float) -> Callable[[Snapshot], Snapshot]:
    return lambda seen: replace(seen, fleet={**seen.fleet, signal: Fact(value, age_s=1.0)})


BLIND: tuple[Callable[[Snapshot], Snapshot], ...] = (
    _aged,
    _without(Signal.FINISHED),
    _without(Signal.WAITING),
    _with(Signal.RUNNING, math.nan),
    _with(Signal.ARRIVED, 900.0),
    lambda seen: replace(seen, time_s=None),
    lambda seen: replace(seen, window_s=None),
    lambda seen: replace(seen, scrapes=1),
    lambda seen: replace(seen, time_s=(seen.time_s or 0.0) - 90.0),
    lambda seen: replace(seen, time_s=(seen.time_s or 0.0) + 90.0),
    lambda seen: replace(seen, oddities={"r1": Oddity.DUPLICATED}),
    lambda seen: replace(seen, fleet={}, replicas={}),
)


@dataclass
class HostileWorld:
    """Control and reader. Every write is told to `on_write` with the value before it, and may fail."""

    rng: random.Random
    clock: ManualClock
    on_write: Callable[[str, str, Value, Value], None]
    truth: Truth = field(init=False)
    blind: Callable[[Snapshot], Snapshot] | None = None
    failing: bool = False
    values: dict[tuple[str, str], Value] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.truth = drawn(self.rng)
        self.values = {(name, r): value for name, value in START.items() for r in REPLICAS}
        self.values |= {(name, FLEET): value for name, value in POOL.items()}

    def read(self, setting: str, target: str) -> Value:
        if (setting, target) not in self.values:
            raise UnknownSettingError(f"no {setting} on {target}")
        return self.values[setting, target]

    def write(self, setting: str, target: str, value: Value) -> Value:
        held = self.read(setting, target)
        if self.failing and self.rng.random() < 0.3:
            raise RefusedError(f"{setting} on {target}", held)
        self.on_write(setting, target, held, value)
        self.values[setting, target] = value
        if self.failing and self.rng.random() < 0.3:
            raise UnreachableError("the reply was lost")
        return value

    def snapshot(self, window_s: float) -> Snapshot:
        replicas = {r: self._replica(r) for r in REPLICAS}
        settings: dict[str, dict[str, Value]] = {}
        for (name, target), value in self.values.items():
            settings.setdefault(name, {})[target] = value
        seen = Snapshot(self.clock.now_s(), window_s, 12, replicas, self._fleet(), settings=settings)
        return seen if self.blind is None else self.blind(seen)

    def _fleet(self) -> dict[Signal, Fact]:
        truth, serving = self.truth, len(self.truth.healthy)
        finished = 120.0 * serving
        return {
            Signal.RUNNING: Fact(RUNNING * serving, start=RUNNING * serving, age_s=1.0),
            Signal.WAITING: Fact(truth.waiting, start=truth.waiting, peak=truth.waiting, age_s=1.0),
            Signal.GATEWAY_QUEUE: Fact(0.0, start=0.0, peak=0.0, age_s=1.0),
            Signal.FINISHED: Fact(finished, age_s=1.0),
            Signal.ARRIVED: Fact(finished, age_s=1.0),
            Signal.ERRORS: Fact(0.0, age_s=1.0),
            Signal.PROMPT_TOKENS_MEAN: Fact(500.0, age_s=1.0),
            Signal.TTFT_MEAN_S: Fact(self._noisy(0.4 * truth.ttft_p99_s), age_s=1.0),
            Signal.TTFT_P95_S: Fact(self._noisy(0.7 * truth.ttft_p99_s), age_s=1.0),
            Signal.TTFT_P99_S: Fact(truth.ttft_p99_s, age_s=1.0),
            Signal.ITL_MEAN_S: Fact(self._noisy(0.02), age_s=1.0),
            Signal.E2E_MEAN_S: Fact(self._noisy(3.0), age_s=1.0),
            Signal.E2E_P99_S: Fact(self._noisy(6.0), age_s=1.0),
        }

    def _noisy(self, value: float) -> float:
        return value * self.truth.speed * self.rng.uniform(0.99, 1.01)

    def _replica(self, name: str) -> dict[Signal, Fact]:
        truth, up = self.truth, name not in self.truth.down
        told = {Signal.UP: float(up), Signal.GATEWAY_SESSIONS: 8.0}
        if up:
            stuck = name in truth.stuck
            told |= {
                Signal.RUNNING: RUNNING,
                Signal.WAITING: truth.waiting / max(1, len(REPLICAS) - len(truth.down)),
                Signal.KV_USAGE_RATIO: truth.kv_ratio[name],
                Signal.FINISHED: 0.0 if stuck else 120.0,
                Signal.GENERATION_TOKENS: 0.0 if stuck else 12_000.0,
                Signal.DEVICE_FREE_BYTES: truth.free_bytes[name],
                Signal.DEVICE_TOTAL_BYTES: 24 * 2.0**30,
                Signal.FRAGMENTATION_RATIO: 0.5 if name in truth.fragmented else 0.02,
                Signal.ITL_MEAN_S: self._noisy(0.03 if name in truth.fragmented else 0.02),
            }
        return {signal: Fact(value, age_s=1.0) for signal, value in told.items()}
