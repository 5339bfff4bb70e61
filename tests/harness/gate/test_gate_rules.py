"""Each rule's edge: the last value it allows, and the first that it does not."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pytest
from gate_situation import ALL, NOW, WATCHED, drain, forecast, past, raising, restart, ruled, ruling_of, snapshot
from scripted_stack import weight_action

from harness.action import Action, Trust
from harness.envelope.envelope import Envelope, Leave, Place, Range
from harness.gate.check import RULES
from harness.gate.history import History, Past
from harness.mode import Mode
from harness.outcome import Ending
from harness.policy import Policy
from harness.verdict import Ruling
from stack import catalogue
from stack.layer import Layer
from stack.setting import Scope, Setting, SettingClass, Value
from stack.snapshot import Fact, Oddity, Signal, Snapshot

ALLOW, ASK, DENY = Ruling.ALLOW, Ruling.ASK, Ruling.DENY
HOUR = 3600.0
WEIGHTS = Range(setting="routing_weight", low=40, high=120, step=10, every_s=5, back_after_s=60)
LEAVE = Leave(
    id=7,
    envelope=Envelope(ranges=(WEIGHTS,), lasts_s=900, requested_by="olga"),
    approved_by="olga",
    ends_s=NOW + 600,
    places=(Place(setting="routing_weight", target="r0", stored=100.0, last=100.0),),
)
GIB = 2.0**30


@dataclass(frozen=True)
class At:
    """A rule, its answer, and the situation in which it gives it."""

    rule: str
    ruling: Ruling
    action: Action = field(default_factory=raising)
    seen: Snapshot = field(default_factory=snapshot)
    history: History = WATCHED
    changes: Mapping[str, object] = field(default_factory=dict)
    mode: Mode = Mode.AUTO
    now_s: float = NOW
    simulated: bool = True
    as_move: bool = False

    @property
    def policy(self) -> Policy:
        return changed(self.changes) if self.changes else ALL


def changed(changes: Mapping[str, object]) -> Policy:
    """The policy with every setting enabled, and `changes`, checked as a file's would be."""
    verification = ALL.verification.model_dump() | {"looks_s": list(ALL.verification.looks_s)}
    return Policy.model_validate(ALL.model_dump() | {"slo": ALL.slo, "verification": verification} | changes)


def facts(target: str = "r0", **values: float) -> Snapshot:
    return with_facts(snapshot(), target, **values)


def with_facts(seen: Snapshot, target: str, **values: float) -> Snapshot:
    told = {Signal[name]: Fact(value, age_s=1.0) for name, value in values.items()}
    if target == "fleet":
        return replace(seen, fleet={**seen.fleet, **told})
    return replace(seen, replicas={**seen.replicas, target: {**seen.replicas[target], **told}})


def aged(age_s: float) -> Snapshot:
    seen = snapshot()
    return replace(seen, fleet={**seen.fleet, Signal.RUNNING: Fact(8.0, age_s=age_s)})


def holding(setting: str, **values: Value) -> Snapshot:
    seen = snapshot()
    return replace(seen, settings={**seen.settings, setting: {**seen.settings.get(setting, {}), **values}})


def did(*pasts: Past, **more: object) -> History:
    return replace(History(pasts, None, HOUR), **more)


def undone(ago_s: float, **more: object) -> Past:
    fields = {"target": "r3", "ending": Ending.ROLLED_BACK, "written_s": NOW - ago_s, "touched_s": NOW - ago_s}
    return past(**({"setting": "routing_weight", "before": 100.0, "after": 60.0} | fields | more))


def moves(*ago_s: float) -> History:
    """The cap of r0 moved up and down by turns, kept each time."""
    values = [(12.0, 16.0), (16.0, 12.0)] * len(ago_s)
    return did(
        *(
            past(before=b, after=a, written_s=NOW - t, touched_s=NOW - t)
            for (b, a), t in zip(values, ago_s, strict=False)
        )
    )


def lowered(ago_s: float, **more: object) -> History:
    """The cap of r0 lowered to 24."""
    return did(past(**({"before": 64.0, "after": 24.0, "written_s": NOW - ago_s, "touched_s": NOW - ago_s} | more)))


def peaked(running: float) -> Snapshot:
    seen = snapshot()
    told = {**seen.replicas["r0"], Signal.RUNNING: Fact(2.0, peak=running, age_s=1.0)}
    return replace(seen, replicas={**seen.replicas, "r0": told})


def at_gateway(**up: float) -> Snapshot:
    seen = snapshot()
    for name, value in up.items():
        seen = with_facts(seen, name, UP=value)
    return seen


def troubled(**values: float) -> Snapshot:
    return facts("r0", **values)


def waited(most: float, now: float = 0.0) -> Snapshot:
    seen = snapshot()
    return replace(seen, fleet={**seen.fleet, Signal.WAITING: Fact(now, peak=most, age_s=1.0)})


def ready(seen: Snapshot, **states: str) -> Snapshot:
    return replace(seen, settings={**seen.settings, "replica_state": dict.fromkeys(seen.replicas, "ready") | states})


def weights(**values: float) -> Snapshot:
    return holding("routing_weight", **values)


AGENTS_RESTART = replace(restart(), requested_by="agent")
EVERYWHERE = replace(raising(), target="fleet")
WEIGHTS_EVERYWHERE = weight_action(target="fleet")
QUEUE_LIMIT = replace(raising(4.0), setting="queue_limit_requests", target="fleet", before=64.0)
UNDRAIN = replace(drain(), before="drain", after="ready")
TAINTED = replace(raising(), tainted=True)
ARRIVED = {"ARRIVED": 240.0}
NO_QUEUE_HOT = {"E2E_P99_S": 3.0, "TTFT_P99_S": 0.96}

EDGES = [
    At("known_setting", ALLOW),
    At("known_setting", DENY, raising(setting="gpu_fan")),
    At("known_setting", DENY, raising(setting="runn\u0456ng_request_cap")),  # a Cyrillic letter
    At("known_setting", DENY, raising(setting="running_request_cap ")),
    At("enabled_setting", ALLOW, changes={"enabled": ["running_request_cap"]}),
    At("enabled_setting", DENY, changes={"enabled": ["routing_weight"]}),
    At("sole_controller", ALLOW, changes={"owned_elsewhere": {"routing_weight": "KEDA"}}),
    At("sole_controller", DENY, changes={"owned_elsewhere": {"running_request_cap": "KEDA"}}),
    At("untainted", ALLOW, TAINTED),
    At("untainted", ALLOW, restart()),
    At("untainted", DENY, replace(restart(), tainted=True)),
    At("target_exists", ALLOW),
    At("target_exists", DENY, raising(target="r9")),
    At("target_exists", DENY, raising(target="r0\u200b")),
    At("target_exists", DENY, replace(raising(), setting="routing_policy", before="round_robin", after="prefix_aware")),
    At("within_bounds", ALLOW, raising(4096.0)),
    At("within_bounds", DENY, raising(4097.0)),
    At("within_bounds", ALLOW, raising(1.0)),
    At("within_bounds", DENY, raising(0.0)),
    At("within_bounds", DENY, raising(16.5)),
    At("within_bounds", DENY, raising(True)),
    At("within_bounds", DENY, raising([24.0])),
    At("within_bounds", DENY, raising("24")),
    At("within_bounds", DENY, raising(math.inf)),
    At("within_bounds", ALLOW, raising(24.0), changes={"bounds": {"running_request_cap": {"low": 8.0, "high": 24.0}}}),
    At("within_bounds", DENY, raising(25.0), changes={"bounds": {"running_request_cap": {"low": 8.0, "high": 24.0}}}),
    At("within_bounds", DENY, raising(7.0), changes={"bounds": {"running_request_cap": {"low": 8.0, "high": 24.0}}}),
    At("step_size", ALLOW, raising(32.0)),
    At("step_size", DENY, raising(33.0)),
    At("step_size", ALLOW, weight_action(100.0, 50.0)),
    At("step_size", DENY, weight_action(100.0, 49.0)),
    At("undo_known", ALLOW),
    At("undo_known", DENY, replace(raising(), before=15.0)),
    At("undo_known", DENY, drain()),
    At("sane_clock", ALLOW, history=did(past(touched_s=NOW + 2))),
    At("sane_clock", DENY, history=did(past(touched_s=NOW + 3))),
    At("sane_clock", DENY, seen=replace(snapshot(), time_s=NOW + 3)),
    At("sane_clock", ALLOW, history=did(seen_until_s=NOW + 2)),
    At("sane_clock", DENY, history=did(seen_until_s=NOW + 3)),
    At("sane_clock", ALLOW, history=did(clock_steady_s=300.0)),
    At("sane_clock", DENY, history=did(clock_steady_s=299.0)),
    At("sane_clock", DENY, history=did(clock_steady_s=math.nan)),
    At("sane_clock", DENY, weight_action(), history=did(clock_steady_s=299.0)),
    At("fresh_snapshot", ALLOW, now_s=NOW + 30),
    At("fresh_snapshot", DENY, now_s=NOW + 31),
    At("fresh_snapshot", ALLOW, seen=replace(snapshot(), scrapes=3)),
    At("fresh_snapshot", DENY, seen=replace(snapshot(), scrapes=2)),
    At("fresh_snapshot", DENY, seen=replace(snapshot(), window_s=0.0)),
    At("fresh_facts", ALLOW, seen=aged(30.0)),
    At("fresh_facts", DENY, seen=aged(30.5)),
    At("fresh_facts", DENY, seen=aged(29.0), now_s=NOW + 2),
    At("fresh_facts", DENY, seen=facts("r0", WAITING=math.nan)),
    At("fresh_facts", ALLOW, drain(), ready(facts("r0", UP=0.0, WAITING=math.nan))),
    At("sound_series", ALLOW),
    At("sound_series", DENY, seen=replace(snapshot(), oddities={"r3": Oddity.DUPLICATED})),
    At("sound_series", DENY, seen=replace(snapshot(), oddities={"gateway": Oddity.AHEAD})),
    At("sound_series", DENY, seen=replace(snapshot(), oddities={"r0": Oddity.RESTARTED})),
    At("sound_series", ALLOW, weight_action(), replace(snapshot(), oddities={"r0": Oddity.RESTARTED})),
    At("sound_series", DENY, weight_action(), replace(snapshot(), oddities={"r0": Oddity.DUPLICATED})),
    At("sources_agree", ALLOW, seen=facts("fleet", ARRIVED=287.0)),
    At("sources_agree", DENY, seen=facts("fleet", ARRIVED=289.0)),
    At("sources_agree", ALLOW, seen=facts("fleet", ARRIVED=206.0)),
    At("sources_agree", DENY, seen=facts("fleet", ARRIVED=205.0)),
    At("sources_agree", ALLOW, seen=facts("fleet", ARRIVED=289.0, ERRORS=5.0)),
    At("sources_agree", ALLOW, seen=at_gateway(r0=1.0, r1=1.0, r2=1.0, r3=1.0)),
    At("sources_agree", DENY, seen=at_gateway(r0=1.0, r1=1.0, r2=1.0)),
    At(
        "sources_agree",
        DENY,
        seen=replace(
            at_gateway(r0=1.0, r1=1.0, r2=1.0),
            replicas={**at_gateway(r0=1.0, r1=1.0, r2=1.0).replicas, "r3": {Signal.UP: Fact(1.0, age_s=1.0)}},
        ),
    ),
    At("corroborated", ALLOW),
    At("corroborated", ALLOW, restart()),
    At("corroborated", DENY, AGENTS_RESTART),
    At("corroborated", DENY, AGENTS_RESTART, troubled(ITL_MEAN_S=0.026)),
    At("corroborated", DENY, AGENTS_RESTART, troubled(FRAGMENTATION_RATIO=0.3)),
    At("corroborated", ALLOW, AGENTS_RESTART, troubled(ITL_MEAN_S=0.026, FRAGMENTATION_RATIO=0.3)),
    At("corroborated", DENY, AGENTS_RESTART, troubled(ITL_MEAN_S=0.026, FRAGMENTATION_RATIO=0.29)),
    At("enough_history", ALLOW, history=History(watched_s=300.0)),
    At("enough_history", DENY, history=History(watched_s=299.0)),
    At("enough_history", DENY, history=History(watched_s=math.nan)),
    At("enough_history", ALLOW, weight_action(), history=History()),
    At("not_frozen", ALLOW),
    At("not_frozen", DENY, history=did(frozen="stopped by olga")),
    At("not_frozen", DENY, weight_action(), history=did(frozen="stopped by olga")),
    At("no_drift", ALLOW, history=did(past(after=16.0, touched_s=NOW - 60))),
    At("no_drift", DENY, history=did(past(after=15.0, touched_s=NOW - 1800))),
    At("no_drift", ALLOW, history=did(past(after=15.0, touched_s=NOW - 1801))),
    At("no_drift", DENY, history=did(past(after=15.0, target="fleet", touched_s=NOW - 60))),
    At("no_drift", ALLOW, history=did(past(before=16.0, after=15.0, touched_s=NOW - 60, ending=Ending.ROLLED_BACK))),
    At("no_drift", ALLOW, history=did(past(after=15.0, touched_s=NOW - 60, ending=Ending.NEEDS_PERSON))),
    At("no_drift", DENY, weight_action(target="r1"), history=did(past(after=15.0, touched_s=NOW - 60))),
    At("inside_envelope", ALLOW, weight_action(after=90.0), history=replace(WATCHED, leave=LEAVE), as_move=True),
    At("inside_envelope", DENY, weight_action(after=89.0), history=replace(WATCHED, leave=LEAVE), as_move=True),
    At("inside_envelope", DENY, weight_action(after=90.0), history=replace(WATCHED, leave=LEAVE)),
    At("inside_envelope", DENY, history=replace(WATCHED, leave=LEAVE)),
    At("one_settling", ALLOW, history=did(*[past(in_probation=True, ending=None)] * 2)),
    At("one_settling", DENY, history=did(*[past(in_probation=True, ending=None)] * 3)),
    At("one_settling", DENY, history=did(past(settling=True, ending=None))),
    At("one_settling", DENY, restart(), history=did(past(in_probation=True, ending=None))),
    At("cooldown", ALLOW, history=did(past(touched_s=NOW - 120))),
    At("cooldown", DENY, history=did(past(touched_s=NOW - 119))),
    At("cooldown", ALLOW, history=did(undone(30.0))),
    At("cooldown", DENY, history=did(undone(29.0))),
    At("cooldown", ALLOW, weight_action(), history=did(undone(1.0))),
    At("cooldown", ALLOW, weight_action(), history=did(undone(30.0, target="r0"))),
    At("cooldown", DENY, weight_action(), history=did(undone(29.0, target="r0"))),
    At("cooldown", DENY, weight_action(), history=did(undone(29.0, target="fleet"))),
    At("reversal", ALLOW, history=did(past(before=24.0, written_s=NOW - 600))),
    At("reversal", DENY, history=did(past(before=24.0, written_s=NOW - 599))),
    At("reversal", DENY, history=did(past(before=24.0, written_s=NOW - 1200, in_probation=True, ending=None))),
    At("reversal", DENY, history=moves(8600.0, 7700.0, 7200.0)),
    At("reversal", ALLOW, history=moves(8600.0, 7700.0, 7201.0)),
    At("reversal", ALLOW, history=moves(9000.0, 7000.0, 3399.0)),
    At("failed_value", DENY, history=did(past(after=24.0, touched_s=NOW - 86399, hard_stopped=True))),
    At("failed_value", DENY, weight_action(), history=did(undone(60.0, hard_stopped=True, target="fleet"))),
    At("failed_value", ALLOW, history=did(past(after=24.0, touched_s=NOW - 86400, hard_stopped=True))),
    At("failed_value", ALLOW, history=did(past(after=23.0, touched_s=NOW - 60, hard_stopped=True))),
    At("failed_value", ALLOW, history=did(past(after=24.0, touched_s=NOW - 60))),
    At("hourly_budget", ALLOW, history=did(*[past(written_s=NOW - HOUR)] * 5, *[past(written_s=NOW - HOUR - 1)] * 5)),
    At("hourly_budget", DENY, history=did(*[past(written_s=NOW - HOUR)] * 6)),
    At("hourly_budget", DENY, restart(), history=did(past(setting_class=SettingClass.C, written_s=NOW - HOUR))),
    At("daily_budget", ALLOW, history=did(*[past(written_s=NOW - 24 * HOUR)] * 19)),
    At("daily_budget", DENY, history=did(*[past(written_s=NOW - 24 * HOUR)] * 20)),
    At("daily_budget", DENY, weight_action(), history=did(*[past(written_s=NOW - 24 * HOUR)] * 20)),
    At("refused_proposals", ALLOW, history=did(refused_s=(NOW - 60,) * 29)),
    At("refused_proposals", DENY, history=did(refused_s=(NOW - 1800,) * 30)),
    At("refused_proposals", ALLOW, history=did(refused_s=(NOW - 1801,) * 30)),
    At("refused_proposals", ALLOW, raising(requested_by="ann"), history=did(refused_s=(NOW - 60,) * 30)),
    At("trip", ALLOW, history=did(undone(60.0))),
    At("trip", ASK, history=did(undone(60.0), undone(60.0 + HOUR))),
    At("trip", ALLOW, history=did(undone(60.0), undone(61.0 + HOUR))),
    At("trip", ASK, history=did(undone(7200.0), undone(8000.0))),
    At("trip", ALLOW, history=did(undone(7201.0), undone(8000.0))),
    At("healthy_replicas", ALLOW, drain(), ready(snapshot(), r3="drain")),
    At("healthy_replicas", DENY, drain(), ready(snapshot(), r2="drain", r3="drain")),
    At("healthy_replicas", ALLOW, drain(), ready(facts("r0", UP=0.0), r2="drain", r3="drain")),
    At(
        "healthy_replicas",
        DENY,
        drain(),
        ready(with_facts(facts("r2", GENERATION_TOKENS=0.0, FINISHED=0.0), "r3", UP=0.0)),
    ),
    At("enough_left", ALLOW, raising(4.0)),
    At("enough_left", DENY, raising(3.0)),
    At("enough_left", ALLOW, raising(6.0), facts("r0", RUNNING=12.0)),
    At("enough_left", DENY, raising(5.0), facts("r0", RUNNING=12.0)),
    At("enough_left", DENY, raising(5.0), peaked(12.0)),
    At("enough_left", DENY, replace(EVERYWHERE, after=5.0), facts("r3", RUNNING=12.0)),
    At("enough_left", ALLOW, raising(8.0), facts("r0", RUNNING=13.0)),  # four fifths of the limit: it binds
    At("enough_left", DENY, raising(7.0), facts("r0", RUNNING=13.0)),
    At("enough_left", ALLOW, raising(12.0), facts("r0", RUNNING=16.0), lowered(HOUR)),
    At("enough_left", DENY, raising(11.0), facts("r0", RUNNING=16.0), lowered(HOUR)),
    At("enough_left", DENY, raising(11.0), facts("r0", RUNNING=16.0), lowered(HOUR, target="fleet")),
    At("enough_left", ALLOW, raising(8.0), facts("r0", RUNNING=16.0), lowered(HOUR + 1)),
    At("enough_left", ALLOW, raising(8.0), facts("r0", RUNNING=16.0), lowered(60.0, target="r1")),
    At("enough_left", ALLOW, raising(8.0), facts("r0", RUNNING=16.0), lowered(60.0, ending=Ending.ROLLED_BACK)),
    At("enough_left", ALLOW, raising(8.0), facts("r0", RUNNING=16.0), lowered(60.0, before=20.0)),
    At("enough_left", ALLOW, QUEUE_LIMIT),
    At("enough_left", DENY, replace(QUEUE_LIMIT, after=3.0)),
    At("enough_left", ALLOW, replace(QUEUE_LIMIT, setting="deadline_shedding_ratio", before=1.0, after=0.1)),
    At("enough_left", ALLOW, weight_action(10.0, 1.0)),
    At("idle_before_drain", ALLOW, drain(), ready(waited(0.0))),
    At("idle_before_drain", DENY, drain(), ready(waited(1.0))),
    At("idle_before_drain", DENY, weight_action(10.0, 0.0), waited(1.0)),
    At("idle_before_drain", ALLOW, weight_action(), waited(1.0)),
    At("idle_before_drain", ALLOW, drain(), ready(with_facts(waited(9.0), "r0", UP=0.0))),
    At("idle_before_drain", ALLOW, drain(), ready(with_facts(waited(9.0), "r0", ITL_MEAN_S=0.0615))),
    At("idle_before_drain", DENY, drain(), ready(with_facts(waited(9.0), "r0", ITL_MEAN_S=0.058))),
    At("idle_before_drain", ALLOW, drain(), ready(with_facts(waited(9.0), "r0", ERRORS=10.0))),
    At("idle_before_drain", DENY, drain(), ready(with_facts(waited(9.0), "r0", ERRORS=9.0, FINISHED=20.0))),
    At("restart_at_low_traffic", ALLOW, restart(), snapshot(per_replica={Signal.KV_USAGE_RATIO: 0.225})),
    At("restart_at_low_traffic", DENY, restart(), snapshot(per_replica={Signal.KV_USAGE_RATIO: 0.226})),
    At("restart_at_low_traffic", DENY, restart(), facts("fleet", WAITING=1.0)),
    At("restart_at_low_traffic", DENY, restart("fleet"), snapshot(per_replica={Signal.KV_USAGE_RATIO: 0.1})),
    At("blast_radius", ALLOW),
    At("blast_radius", ALLOW, EVERYWHERE),
    At("blast_radius", DENY, EVERYWHERE, changes={"blast": {"traffic_moved_max_ratio": 0.25, "fleet_wide_first": []}}),
    At("blast_radius", DENY, WEIGHTS_EVERYWHERE),
    At("blast_radius", ALLOW, WEIGHTS_EVERYWHERE, history=did(past(setting="routing_weight", ending=Ending.KEPT))),
    At("blast_radius", DENY, WEIGHTS_EVERYWHERE, history=did(undone(7000.0))),
    At("blast_radius", ALLOW, weight_action(200.0, 66.0), weights(r0=200.0)),
    At("blast_radius", DENY, weight_action(300.0, 75.0), weights(r0=300.0)),
    At("blast_radius", ALLOW, drain(), ready(snapshot())),
    At("blast_radius", ALLOW, UNDRAIN, ready(snapshot(), r0="drain")),
    At("blast_radius", DENY, UNDRAIN, ready(weights(r0=120.0), r0="drain")),
    At("blast_radius", DENY, drain(), ready(weights(r0=120.0))),
    At("blast_radius", ALLOW, drain(), ready(with_facts(weights(r0=120.0), "r0", UP=0.0))),
    At("memory_headroom", ALLOW, raising(f=None), snapshot(per_replica={Signal.KV_USAGE_RATIO: 0.85})),
    At("memory_headroom", DENY, raising(f=None), snapshot(per_replica={Signal.KV_USAGE_RATIO: 0.86})),
    At("memory_headroom", ALLOW, raising(f=forecast(kv_usage_p95_ratio=(0.3, 0.85)))),
    At("memory_headroom", DENY, raising(f=forecast(kv_usage_p95_ratio=(0.3, 0.86)))),
    At("memory_headroom", ALLOW, seen=troubled(DEVICE_FREE_BYTES=2 * GIB, DEVICE_TOTAL_BYTES=40 * GIB)),
    At("memory_headroom", DENY, seen=troubled(DEVICE_FREE_BYTES=2 * GIB - 1, DEVICE_TOTAL_BYTES=40 * GIB)),
    At("memory_headroom", DENY, seen=troubled(DEVICE_FREE_BYTES=3 * GIB, DEVICE_TOTAL_BYTES=80 * GIB)),
    At("latency_headroom", ALLOW, raising(f=None), facts("fleet", TTFT_P99_S=0.94)),
    At("latency_headroom", DENY, raising(f=None), facts("fleet", TTFT_P99_S=0.95)),
    At("latency_headroom", ALLOW, raising(f=None), facts("fleet", TTFT_P99_S=0.95, WAITING=1.0)),
    At(
        "latency_headroom",
        DENY,
        raising(f=forecast(e2e_p99_s=(9.0, 9.1))),
        facts("fleet", TTFT_P99_S=0.95, WAITING=1.0),
    ),
    At("latency_headroom", ALLOW, raising(f=forecast(e2e_p99_s=(9.0, 9.0))), facts("fleet", TTFT_P99_S=0.95)),
    At("minimum_gain", ALLOW, raising(f=forecast(slo_share=(0.7, 0.7201)))),
    At("minimum_gain", DENY, raising(f=forecast(slo_share=(0.7, 0.719)))),
    At("minimum_gain", ASK, raising(f=None)),
    At("minimum_gain", ASK, raising(f=forecast(Trust.DOUBTED, slo_share=(0.7, 0.9)))),
    At("minimum_gain", ALLOW, weight_action()),
    At("authority", ALLOW),
    At("authority", ASK, simulated=False),
    At("authority", ALLOW, simulated=False, changes={"vouched": ["running_request_cap"]}),
    At("authority", ALLOW, simulated=False, history=did(earned=frozenset({"running_request_cap"}))),
    At("authority", ASK, simulated=False, history=did(earned=frozenset({"routing_weight"}))),
    At("authority", ASK, restart(), simulated=False, history=did(earned=frozenset({"worker_generation"}))),
    At("authority", ASK, mode=Mode.APPROVE, simulated=False, history=did(earned=frozenset({"running_request_cap"}))),
    At("authority", ASK, mode=Mode.SHADOW, simulated=False, history=did(earned=frozenset({"running_request_cap"}))),
    At("authority", ASK, mode=Mode.APPROVE),
    At("authority", ASK, mode=Mode.SHADOW),
    At("authority", ASK, restart()),
]


@pytest.mark.parametrize("edge", EDGES, ids=[f"{n}-{edge.rule}-{edge.ruling}" for n, edge in enumerate(EDGES)])
def test_edge(edge: At):
    mode, now_s, simulated = edge.mode, edge.now_s, edge.simulated
    verdict = ruled(edge.action, edge.seen, edge.history, edge.policy, mode, now_s, simulated, as_move=edge.as_move)
    found = next(r for r in verdict.rules if r.rule == edge.rule)
    assert found.ruling is edge.ruling, found.detail
    assert ruling_of(verdict, edge.rule) is edge.ruling and found.detail


def test_every_rule_has_both_sides_of_its_edge_in_the_table():
    sides = {rule.__name__: {edge.ruling is ALLOW for edge in EDGES if edge.rule == rule.__name__} for rule in RULES}
    assert {name for name, found in sides.items() if found != {True, False}} == set()


def made(kind: SettingClass) -> Setting:
    return Setting(
        name="made_setting",
        layer=Layer.MEMORY,
        scope=Scope.REPLICA,
        unit="points",
        setting_class=kind,
        mechanism="none",
        default=1.0,
        low=0,
        high=100,
    )


@pytest.mark.parametrize(
    ("kind", "tainted", "rule", "ruling"),
    [
        (SettingClass.D, False, "enabled_setting", DENY),
        (SettingClass.B, False, "untainted", ALLOW),
        (SettingClass.B, True, "untainted", ASK),
        (SettingClass.B, False, "authority", ASK),
        (SettingClass.B, False, "corroborated", DENY),
    ],
)
def test_classes_that_no_setting_has_yet(monkeypatch, kind: SettingClass, tainted: bool, rule: str, ruling: Ruling):
    monkeypatch.setitem(catalogue._BY_NAME, "made_setting", made(kind))
    policy = ALL.model_copy(update={"enabled": ALL.enabled | {"made_setting"}})
    action = replace(raising(), setting="made_setting", before=1.0, after=2.0, tainted=tainted)
    assert ruling_of(ruled(action, policy=policy), rule) is ruling
