"""What holds for every action in every situation."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import pytest
from gate_situation import ALL, GAIN, NOW, drain, past, raising, restart
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted_stack import REPLICAS, ManualClock, ScriptedStack, weight_action

from harness.action import Action, Forecast, Predicted, Trust
from harness.gate import check as gate
from harness.gate.history import History, Past
from harness.mode import Mode
from harness.outcome import Ending
from harness.policy import Policy
from harness.verdict import Ruling, Verdict
from stack.catalogue import SETTINGS
from stack.setting import SettingClass
from stack.snapshot import FLEET, Fact, Oddity, Signal, Snapshot

WORST = list(Ruling)
NAMES = [rule.__name__ for rule in gate.RULES]
MANY = settings(max_examples=150, deadline=None)


@dataclass(frozen=True)
class Scene:
    """All inputs of one check."""

    action: Action
    snapshot: Snapshot
    history: History
    policy: Policy = ALL
    mode: Mode = Mode.AUTO
    now_s: float = NOW
    simulated: bool = True

    def check(self) -> Verdict:
        about = (self.action, self.snapshot, self.history, self.policy)
        return gate.check(*about, mode=self.mode, now_s=self.now_s, simulated=self.simulated)


FRACTION = st.floats(0.0, 1.0)
REPLICA = st.sampled_from(REPLICAS)
LOADS: Mapping[Signal, st.SearchStrategy[float]] = {
    Signal.RUNNING: st.floats(0, 64),
    Signal.WAITING: st.sampled_from([0.0, 0.0, 1.0, 40.0]),
    Signal.KV_USAGE_RATIO: FRACTION,
    Signal.UP: st.sampled_from([1.0, 1.0, 1.0, 0.0]),
    Signal.ERRORS: st.sampled_from([0.0, 0.0, 30.0]),
    Signal.ITL_MEAN_S: st.floats(0.005, 0.2),
    Signal.DEVICE_FREE_BYTES: st.floats(0, 2.0**34),
}


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    seen = ScriptedStack(ManualClock(NOW)).snapshot(60.0)
    told = draw(st.lists(st.sampled_from(list(LOADS)), unique=True, max_size=4))
    replicas = {
        name: {**facts, **{signal: Fact(draw(LOADS[signal]), age_s=1.0) for signal in told}}
        for name, facts in seen.replicas.items()
    }
    waiting = sum(facts[Signal.WAITING].value for facts in replicas.values())
    fleet = {
        **seen.fleet,
        Signal.WAITING: Fact(waiting, start=waiting, peak=waiting, age_s=1.0),
        Signal.TTFT_P99_S: Fact(draw(st.floats(0.1, 3.0)), age_s=1.0),
    }
    known = {"replica_state": dict.fromkeys(REPLICAS, "ready"), "worker_generation": dict.fromkeys(REPLICAS, 0.0)}
    return replace(seen, replicas=replicas, fleet=fleet, settings={**seen.settings, **known})


@st.composite
def forecasts(draw: st.DrawFn) -> Forecast | None:
    if draw(st.booleans()):
        return GAIN
    names = draw(st.lists(st.sampled_from(["slo_share", "e2e_p99_s", "kv_usage_p95_ratio"]), unique=True))
    pairs = {name: (draw(st.floats(0, 2)), draw(st.floats(0, 2))) for name in names}
    effects = {name: Predicted(b, a, min(a, b), max(a, b)) for name, (b, a) in pairs.items()}
    return draw(st.sampled_from([None, Forecast(300.0, effects, draw(st.sampled_from(list(Trust))))]))


@st.composite
def actions(draw: st.DrawFn) -> Action:
    place = draw(st.sampled_from([*REPLICAS, FLEET]))
    made = draw(
        st.sampled_from(
            [
                raising(target=place),
                raising(12.0, target=place),
                weight_action(target=place),
                weight_action(100.0, 140.0, place),
                drain(place),
                restart(place),
                replace(restart(place), requested_by="agent"),
            ]
        )
    )
    return replace(made, forecast=draw(forecasts()), tainted=draw(st.booleans()))


@st.composite
def histories(draw: st.DrawFn) -> History:
    def one() -> Past:
        ago_s = draw(st.floats(0, 90_000))
        state = draw(st.sampled_from([{"settling": True}, {"in_probation": True}, *({"ending": e} for e in Ending)]))
        name, before, after = draw(
            st.sampled_from(
                [
                    ("running_request_cap", 12.0, 16.0),
                    ("running_request_cap", 24.0, 16.0),
                    ("routing_weight", 60.0, 100.0),
                ]
            )
        )
        fields = {"ending": None, "hard_stopped": draw(st.booleans()), **state}
        fields |= {"setting": name, "target": draw(st.sampled_from([*REPLICAS, FLEET])), "before": before}
        return past(after=after, written_s=NOW - ago_s, touched_s=NOW - ago_s, **fields)

    pasts = sorted((one() for _ in range(draw(st.integers(0, 4)))), key=lambda p: p.written_s)
    refused_s = tuple(draw(st.lists(st.floats(NOW - 8000, NOW), max_size=2)) * draw(st.sampled_from([1, 20])))
    frozen, watched_s = draw(st.sampled_from([None, None, "stop"])), draw(st.floats(0, 4000))
    return History(tuple(pasts), frozen, watched_s, refused_s, draw(EARNED))


EARNED = st.frozensets(st.sampled_from(["running_request_cap", "routing_weight"]))
SCENES = st.builds(Scene, actions(), snapshots(), histories(), simulated=st.booleans())


def judged(scene: Scene) -> dict[str, Ruling]:
    return {r.rule: r.ruling for r in scene.check().rules}


@MANY
@given(SCENES)
def test_every_rule_is_listed_with_words_and_the_worst_decides(scene: Scene):
    verdict = scene.check()
    assert [r.rule for r in verdict.rules] == NAMES
    assert all(r.detail for r in verdict.rules)
    assert verdict.ruling is max((r.ruling for r in verdict.rules), key=WORST.index)


@MANY
@given(SCENES)
def test_equal_inputs_give_equal_verdicts(scene: Scene):
    again = replace(scene, snapshot=replace(scene.snapshot), history=replace(scene.history))
    assert scene.check() == again.check() == scene.check()


def _fact(scene: Scene, target: str, signal: Signal, change: Callable[[Fact], Fact]) -> Scene:
    seen = scene.snapshot
    facts = dict(seen.fleet if target == FLEET else seen.replicas[target])
    if signal in facts:
        facts[signal] = change(facts[signal])
    changed = (
        replace(seen, fleet=facts) if target == FLEET else replace(seen, replicas={**seen.replicas, target: facts})
    )
    return replace(scene, snapshot=changed)


def _add(scene: Scene, **fields: object) -> Scene:
    added = past(**({"setting": "tokens_per_step", "target": FLEET, "ending": None} | fields))
    return replace(scene, history=replace(scene.history, past=(*scene.history.past, added)))


def _policy(scene: Scene, part: str, **limits: object) -> Scene:
    tighter = getattr(scene.policy, part).model_copy(update=limits)
    return replace(scene, policy=scene.policy.model_copy(update={part: tighter}))


WORSENINGS: Mapping[str, Callable[[Scene, str, float], Scene]] = {
    "older snapshot": lambda s, r, x: replace(s, snapshot=replace(s.snapshot, time_s=s.snapshot.time_s - 60 * x)),
    "older fact of the fleet": lambda s, r, x: _fact(s, FLEET, Signal.RUNNING, lambda f: replace(f, age_s=1 + 60 * x)),
    "older KV use": lambda s, r, x: _fact(s, r, Signal.KV_USAGE_RATIO, lambda f: replace(f, age_s=1 + 60 * x)),
    "fuller KV": lambda s, r, x: _fact(s, r, Signal.KV_USAGE_RATIO, lambda f: replace(f, value=f.value + x)),
    "less device memory": lambda s, r, x: _fact(
        s, r, Signal.DEVICE_FREE_BYTES, lambda f: replace(f, value=f.value * x)
    ),
    "fewer scrapes": lambda s, r, x: replace(s, snapshot=replace(s.snapshot, scrapes=int(5 * x))),
    "two series under one name": lambda s, r, x: replace(
        s, snapshot=replace(s.snapshot, oddities={r: Oddity.DUPLICATED})
    ),
    "arrivals nobody accounts for": lambda s, r, x: _fact(
        s, FLEET, Signal.ARRIVED, lambda f: replace(f, value=f.value * (1 + x))
    ),
    "P99 nearer to its limit": lambda s, r, x: (
        s
        if s.action.declaration.setting_class is SettingClass.C
        else _fact(s, FLEET, Signal.TTFT_P99_S, lambda f: replace(f, value=f.value + x))
    ),
    "watched for less long": lambda s, r, x: replace(s, history=replace(s.history, watched_s=s.history.watched_s * x)),
    "frozen": lambda s, r, x: replace(s, history=replace(s.history, frozen="stop")),
    "one settles": lambda s, r, x: _add(s, settling=True),
    "one in probation": lambda s, r, x: _add(s, in_probation=True, written_s=NOW - 300, touched_s=NOW - 300),
    "one more rollback": lambda s, r, x: _add(
        s, ending=Ending.ROLLED_BACK, written_s=NOW - 7000 * x, touched_s=NOW - 7000 * x
    ),
    "more refusals": lambda s, r, x: replace(
        s, history=replace(s.history, refused_s=(*s.history.refused_s, *(NOW - 9000 * x,) * 15))
    ),
    "no shadow record": lambda s, r, x: replace(s, history=replace(s.history, earned=frozenset())),
    "a real stack": lambda s, r, x: replace(s, simulated=False),
    "a clock that went back": lambda s, r, x: replace(s, now_s=s.now_s - 100 * x),
    "shadow": lambda s, r, x: replace(s, mode=Mode.SHADOW),
    "setting not enabled": lambda s, r, x: replace(
        s, policy=s.policy.model_copy(update={"enabled": s.policy.enabled - {s.action.setting}})
    ),
    "setting owned elsewhere": lambda s, r, x: replace(
        s, policy=s.policy.model_copy(update={"owned_elsewhere": {s.action.setting: "KEDA"}})
    ),
    "chosen by a model": lambda s, r, x: replace(s, action=replace(s.action, tainted=True)),
    "lower KV watermark": lambda s, r, x: _policy(s, "memory", kv_usage_max_ratio=0.85 * x + 1e-9),
    "higher device floor": lambda s, r, x: _policy(s, "memory", device_free_min_bytes=2.0**31 * (1 + 10 * x)),
    "lower share of the SLO": lambda s, r, x: _policy(s, "latency", slo_max_ratio=0.9 * x + 1e-9),
    "more healthy replicas": lambda s, r, x: _policy(s, "health", replicas_min=2 + int(4 * x)),
    "more left under a limit": lambda s, r, x: _policy(
        s, "health", limit_left_min_ratio=0.5 + 0.5 * x, limit_left_min_requests=4 + int(20 * x)
    ),
    "less traffic for a restart": lambda s, r, x: _policy(s, "health", restart_kv_usage_max_ratio=0.3 * x + 1e-9),
    "fewer changes a day": lambda s, r, x: _policy(s, "pace", per_day=1 + int(19 * x)),
    "longer cooldown": lambda s, r, x: _policy(s, "pace", cooldown_floor_s=30 + 3000 * x),
    "longer stand-down": lambda s, r, x: _policy(s, "pace", stand_down_s=1800 + 50_000 * x),
    "longer trip": lambda s, r, x: _policy(s, "pace", trip_s=7200 + 50_000 * x),
    "a higher gain asked for": lambda s, r, x: _policy(
        s, "pace", slo_share_gain_min_ratio=0.02 + 0.5 * x, latency_gain_min_ratio=0.05 + 0.5 * x
    ),
    "less traffic moved at first": lambda s, r, x: _policy(s, "blast", traffic_moved_max_ratio=0.25 * x + 1e-9),
}


@pytest.mark.parametrize("name", WORSENINGS)
@settings(max_examples=40, deadline=None)
@given(scene=SCENES, replica=REPLICA, amount=FRACTION)
def test_making_one_input_worse_never_turns_a_rule_milder(name: str, scene: Scene, replica: str, amount: float):
    before, after = judged(scene), judged(WORSENINGS[name](scene, replica, amount))
    milder = {rule for rule in NAMES if WORST.index(after[rule]) < WORST.index(before[rule])}
    assert not milder


@MANY
@given(
    st.integers(1, 400),
    st.integers(1, 1024),
    st.lists(st.tuples(st.integers(1, 1024), st.floats(0, 600)), max_size=8),
)
def test_no_series_of_lowerings_within_an_hour_goes_below_a_quarter_of_what_ran(
    load: int, cap: int, wishes: list[tuple[int, float]]
):
    held, history, now_s = float(cap), History(watched_s=4000), NOW
    for wanted, after_s in wishes:
        now_s = min(now_s + after_s, NOW + 3600)
        seen = ScriptedStack(ManualClock(now_s)).snapshot(60.0)
        running = {Signal.RUNNING: Fact(min(float(load), held), age_s=1.0)}
        seen = replace(seen, replicas={**seen.replicas, "r0": {**seen.replicas["r0"], **running}})
        action = replace(raising(float(wanted)), before=held)
        if wanted < held and judged(Scene(action, seen, history, now_s=now_s))["enough_left"] is Ruling.ALLOW:
            step = past(before=held, after=float(wanted), written_s=now_s, touched_s=now_s, ending=Ending.KEPT)
            held, history = float(wanted), replace(history, past=(*history.past, step))
    assert held == cap or held >= max(4, min(load, cap) / 4)


BAD = st.sampled_from([math.nan, math.inf, -math.inf, -1.0, None])
ESSENTIAL = st.sampled_from([(FLEET, Signal.RUNNING), (FLEET, Signal.WAITING), (FLEET, Signal.FINISHED)])


def spoiled(scene: Scene, target: str, signal: Signal, value: float | None) -> Scene:
    if value is not None:
        return _fact(scene, target, signal, lambda fact: replace(fact, value=value))
    seen = scene.snapshot
    facts = {s: f for s, f in (seen.fleet if target == FLEET else seen.replicas[target]).items() if s is not signal}
    gone = replace(seen, fleet=facts) if target == FLEET else replace(seen, replicas={**seen.replicas, target: facts})
    return replace(scene, snapshot=gone)


@MANY
@given(SCENES, ESSENTIAL, BAD)
def test_what_is_no_number_or_missing_never_passes(scene: Scene, place: tuple[str, Signal], value: float | None):
    assert spoiled(scene, *place, value).check().ruling is Ruling.DENY


@MANY
@given(snapshots(), REPLICA, BAD, st.sampled_from([Signal.RUNNING, Signal.WAITING, Signal.KV_USAGE_RATIO]))
def test_nor_does_a_raise_of_memory_without_the_facts_of_its_replica(
    seen: Snapshot, replica: str, value: float | None, signal: Signal
):
    up = replace(seen, replicas={n: {**f, Signal.UP: Fact(1.0, age_s=1.0)} for n, f in seen.replicas.items()})
    scene = Scene(raising(target=replica), up, History(watched_s=4000))
    assert spoiled(scene, replica, signal, value).check().ruling is Ruling.DENY


@MANY
@given(
    SCENES,
    st.sampled_from(["after", "before", "setting", "target"]),
    st.one_of(
        st.floats(allow_nan=True, allow_infinity=True),
        st.integers(),
        st.text(max_size=20),
        st.none(),
        st.booleans(),
        st.binary(max_size=4),
        st.lists(st.integers(), max_size=2),
        st.complex_numbers(),
        st.fractions(),
        st.just(10**400),
    ),
)
def test_a_plan_of_any_type_gets_a_verdict_and_passes_only_in_bounds(scene: Scene, name: str, value: object):
    scene = replace(scene, action=replace(scene.action, **{name: value}))
    verdict = scene.check()
    assert [r.rule for r in verdict.rules] == NAMES
    if verdict.ruling is not Ruling.DENY:
        declared = {setting.name: setting for setting in SETTINGS}[scene.action.setting]
        assert declared.problem_with(scene.action.after) is None
        assert scene.action.target in (*REPLICAS, FLEET)
        assert type(scene.action.after) in (int, float, str)


@pytest.mark.parametrize("error", [RuntimeError, RecursionError, KeyError, AssertionError, MemoryError, TypeError])
@pytest.mark.parametrize("place", range(len(gate.RULES)))
def test_a_rule_that_raises_denies(monkeypatch, error: type[Exception], place: int):
    def broken(_case: object) -> None:
        raise error("broken")

    rules = list(gate.RULES)
    rules[place] = broken
    monkeypatch.setattr(gate, "RULES", tuple(rules))
    verdict = Scene(raising(), ScriptedStack(ManualClock(NOW)).snapshot(60.0), History(watched_s=4000)).check()
    assert verdict.ruling is Ruling.DENY and len(verdict.rules) == len(rules)
    assert "could not be decided" in verdict.rules[place].detail
