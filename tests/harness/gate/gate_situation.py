"""A fleet of four at ease, a change that the gate allows there, and ways to make either worse."""

from dataclasses import replace

from scripted_stack import ManualClock, ScriptedStack, cap_action

from harness.action import Action, Forecast, Predicted, Trust
from harness.gate.check import check
from harness.gate.history import History, Past
from harness.mode import Mode
from harness.outcome import Ending
from harness.policy import Policy
from harness.verdict import Ruling, Verdict
from stack.catalogue import SETTINGS
from stack.layer import Layer
from stack.setting import SettingClass
from stack.snapshot import Fact, Signal, Snapshot

NOW = 10_000.0
WATCHED = History(watched_s=3600.0)
ALL = Policy.load(enabled=[s.name for s in SETTINGS])


def snapshot(fleet: dict[Signal, float] | None = None, per_replica: dict[Signal, float] | None = None) -> Snapshot:
    seen = ScriptedStack(ManualClock(NOW)).snapshot(60.0)
    extra = {s: Fact(v, age_s=1.0) for s, v in (per_replica or {}).items()}
    return replace(
        seen,
        fleet={**seen.fleet, **{s: Fact(v, age_s=1.0) for s, v in (fleet or {}).items()}},
        replicas={name: {**facts, **extra} for name, facts in seen.replicas.items()},
    )


def forecast(trust: Trust = Trust.TRUSTED, **effects: tuple[float, float]) -> Forecast:
    predicted = {n: Predicted(b, a, min(a, b), max(a * 0.999, a)) for n, (b, a) in effects.items()}
    return Forecast(300.0, predicted, trust)


GAIN = forecast(slo_share=(0.7, 0.9), e2e_p99_s=(9.0, 6.0), kv_usage_p95_ratio=(0.3, 0.5))


def raising(after: float = 24.0, f: Forecast | None = GAIN, **changes: object) -> Action:
    return replace(cap_action(16.0, after), forecast=f, **changes)


def ruled(
    action: Action,
    seen: Snapshot | None = None,
    history: History = WATCHED,
    policy: Policy = ALL,
    mode: Mode = Mode.AUTO,
    now_s: float = NOW,
    simulated: bool = True,
    *,
    as_move: bool = False,
) -> Verdict:
    facts = seen or snapshot()
    return check(action, facts, history, policy, mode=mode, now_s=now_s, simulated=simulated, as_move=as_move)


def hit(verdict: Verdict, rule: str) -> str:
    found = [r for r in verdict.hits if r.rule == rule]
    assert found, [f"{r.rule}: {r.detail}" for r in verdict.hits]
    return found[0].detail


def past(**changes: object) -> Past:
    base = Past(
        setting="running_request_cap",
        target="r0",
        setting_class=SettingClass.A,
        before=12.0,
        after=16.0,
        written_s=NOW - 2000,
        touched_s=NOW - 2000,
        ending=Ending.KEPT,
    )
    return replace(base, **changes)


def ruling_of(verdict: Verdict, rule: str) -> Ruling:
    return next(r.ruling for r in verdict.rules if r.rule == rule)


def drain(target: str = "r0") -> Action:
    return Action(
        setting="replica_state",
        target=target,
        before="ready",
        after="drain",
        cause="sick",
        layer=Layer.ROUTING,
        reason="r0 is sick",
        forecast=GAIN,
    )


def with_states(seen: Snapshot, **states: str) -> Snapshot:
    ready = {name: states.get(name, "ready") for name in seen.replicas}
    return replace(seen, settings={**seen.settings, "replica_state": ready})


def restart(target: str = "r0") -> Action:
    return replace(drain(target), setting="worker_generation", before=0.0, after=1.0, requested_by="ann")
