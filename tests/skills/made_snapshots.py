"""Hand-made snapshots: a pool of alike, calm replicas, of which single facts are then changed."""

from collections.abc import Mapping

from skills.skill import SkillContext
from stack.catalogue import SETTINGS
from stack.setting import Value
from stack.snapshot import Fact, Signal, Snapshot

EVERY_SETTING = frozenset(setting.name for setting in SETTINGS)
CALM: Mapping[Signal, Fact] = {
    Signal.RUNNING: Fact(20.0, start=18.0, peak=24.0, age_s=2.0, trend_per_min=2.0),
    Signal.WAITING: Fact(0.0, start=0.0, peak=0.0, age_s=2.0, trend_per_min=0.0),
    Signal.KV_USAGE_RATIO: Fact(0.3, start=0.28, peak=0.34, age_s=2.0, trend_per_min=0.02),
    Signal.PREEMPTIONS: Fact(0.0, start=0.0, age_s=2.0),
    Signal.ARRIVED: Fact(300.0, start=148.0, age_s=2.0),
    Signal.FINISHED: Fact(298.0, start=150.0, age_s=2.0),
    Signal.PROMPT_TOKENS: Fact(270_000.0, start=135_000.0, age_s=2.0),
    Signal.GENERATION_TOKENS: Fact(45_000.0, start=22_000.0, age_s=2.0),
    Signal.PROMPT_TOKENS_MEAN: Fact(900.0, start=900.0, age_s=2.0),
    Signal.PREFIX_HIT_RATIO: Fact(0.4, start=0.4, age_s=2.0),
    Signal.PREFIX_QUERIED_TOKENS: Fact(270_000.0, start=135_000.0, age_s=2.0),
    Signal.TTFT_MEAN_S: Fact(0.12, start=0.12, age_s=2.0),
    Signal.TTFT_P95_S: Fact(0.3, start=0.3, age_s=2.0),
    Signal.ITL_MEAN_S: Fact(0.012, start=0.012, age_s=2.0),
    Signal.E2E_MEAN_S: Fact(2.0, start=2.0, age_s=2.0),
    Signal.QUEUE_MEAN_S: Fact(0.0, start=0.0, age_s=2.0),
    Signal.PREFILL_MEAN_S: Fact(0.08, start=0.08, age_s=2.0),
}
SUMMED = (
    Signal.RUNNING,
    Signal.WAITING,
    Signal.PREEMPTIONS,
    Signal.ARRIVED,
    Signal.FINISHED,
    Signal.PROMPT_TOKENS,
    Signal.GENERATION_TOKENS,
    Signal.PREFIX_QUERIED_TOKENS,
)
SETTINGS_IN_FORCE: Mapping[str, Value] = {
    "routing_weight": 100.0,
    "replica_state": "ready",
    "replica_concurrency_cap": 64.0,
    "running_request_cap": 32.0,
    "tokens_per_step": 8192.0,
    "long_prefill_threshold_tokens": 0.0,
    "usable_kv_blocks_ratio": 1.0,
    "execution_profile": "default",
    "worker_generation": 0.0,
}
POOL_SETTINGS: Mapping[str, Value] = {
    "routing_policy": "round_robin",
    "queue_limit_requests": 1_000_000.0,
    "deadline_shedding_ratio": 1_000_000.0,
    "priority_policy": "fcfs",
    "batch_in_flight_cap": 1_000_000.0,
}


def pool(*changes: Mapping[Signal, Fact], fleet: Mapping[Signal, Fact] | None = None, **settings: Value) -> Snapshot:
    """One replica per argument, `r0` onwards, each calm but for its changes; `settings` hold on all of them."""
    replicas = {f"r{index}": {**CALM, **change} for index, change in enumerate(changes)}
    held = {name: dict.fromkeys(replicas, settings.get(name, value)) for name, value in SETTINGS_IN_FORCE.items()}
    held |= {name: {"fleet": settings.get(name, value)} for name, value in POOL_SETTINGS.items()}
    return Snapshot(
        time_s=1_700_000_000.0,
        window_s=60.0,
        scrapes=13,
        replicas=replicas,
        fleet={**_together(list(replicas.values())), **(fleet or {})},
        configuration={name: {"model_name": "m"} for name in replicas},
        settings=held,
    )


def context(snapshot: Snapshot, **changes: object) -> SkillContext:
    fields: dict[str, object] = {"snapshot": snapshot, "enabled": EVERY_SETTING} | changes
    return SkillContext(**fields)  # type: ignore[arg-type]


def queue(now: float, before: float | None = None) -> dict[Signal, Fact]:
    start = now if before is None else before
    return {Signal.WAITING: Fact(now, start=start, peak=max(now, start), age_s=2.0, trend_per_min=now - start)}


def running(now: float, before: float | None = None) -> dict[Signal, Fact]:
    start = now if before is None else before
    return {Signal.RUNNING: Fact(now, start=start, peak=max(now, start), age_s=2.0, trend_per_min=now - start)}


def kv(now: float, before: float | None = None, preempted: float = 0.0, early: float = 0.0) -> dict[Signal, Fact]:
    start = now if before is None else before
    return {
        Signal.KV_USAGE_RATIO: Fact(now, start=start, peak=max(now, start), age_s=2.0),
        Signal.PREEMPTIONS: Fact(preempted, start=early, age_s=2.0),
    }


def measured(**values: float) -> dict[Signal, Fact]:
    return {Signal[name.upper()]: Fact(value, start=value, age_s=2.0) for name, value in values.items()}


def _together(replicas: list[dict[Signal, Fact]]) -> dict[Signal, Fact]:
    facts: dict[Signal, Fact] = {}
    for signal in CALM:
        held = [replica[signal] for replica in replicas if signal in replica]
        if held:
            share = 1.0 if signal in SUMMED else 1.0 / len(held)
            start = share * sum(fact.start or 0.0 for fact in held)
            peak = share * sum(fact.peak or 0.0 for fact in held)
            facts[signal] = Fact(share * sum(fact.value for fact in held), start=start, peak=peak, age_s=2.0)
    return facts
