"""Proposals: only what is enabled, known, in bounds and answers a finding; and candidates for a search."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_snapshots import EVERY_SETTING, context, kv, measured, pool, queue, running

from harness.action import Action, Forecast, Predicted, Trust
from harness.diagnosis import Finding
from skills import SKILLS
from skills.candidates import candidates, within_step
from skills.diagnose import diagnose
from skills.forecast_change import forecast_change
from skills.recall_episodes import recall_episodes
from skills.remedies import REMEDIES
from skills.restart_worker import restart_worker
from skills.set_running_request_cap import set_running_request_cap
from skills.skill import NotApplicableError, PastEpisode, SkillError
from stack.catalogue import SETTINGS, UNLIMITED, setting_named
from stack.layer import Layer
from stack.snapshot import Fact, Signal, Snapshot

STUCK = {**running(32), **queue(20), **measured(ttft_p95_s=3.0)}
SEEN = pool(STUCK, {}, {})
ARGUMENTS = {"target": "r0", "cause": "running_cap_binds", "reason": "32 run, 20 wait,\n KV 30 %"}


def test_a_proposal_is_an_action_that_answers_a_finding():
    action = set_running_request_cap(context(SEEN), cap=64, **ARGUMENTS)
    assert isinstance(action, Action)
    assert (action.before, action.after, action.layer) == (32.0, 64.0, Layer.BATCHING)
    assert action.reason == "32 run, 20 wait, KV 30 %"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cap": 0}, "cap: .*greater than or equal to 1"),
        ({"cap": 1.5}, "whole number"),
        ({"cause": "boredom"}, "no finding 'boredom'"),
        ({"target": "r9"}, "no replica 'r9'"),
        ({"target": "fleet", "cap": 32}, "already is"),
    ],
)
def test_unsound_proposals_say_what_was_expected(change, message):
    with pytest.raises(SkillError, match=message):
        set_running_request_cap(context(SEEN), **({"cap": 64} | ARGUMENTS | change))


def test_a_setting_that_is_not_enabled_is_not_proposed():
    with pytest.raises(NotApplicableError, match="not enabled; enabled are routing_weight"):
        set_running_request_cap(context(SEEN, enabled=frozenset({"routing_weight"})), cap=64, **ARGUMENTS)


def test_a_value_without_a_way_back_is_not_proposed():
    unknown = Snapshot(SEEN.time_s, 60.0, 13, SEEN.replicas, SEEN.fleet, settings={})
    with pytest.raises(NotApplicableError, match="no way back"):
        set_running_request_cap(
            context(unknown), cap=64, **(ARGUMENTS | {"cause": diagnose(unknown, context(unknown)).findings[0].cause})
        )


def test_kv_comes_before_a_bigger_batch_whoever_asks():
    full = pool({**STUCK, **kv(0.97, 0.9, preempted=30, early=10)})
    with pytest.raises(NotApplicableError, match="not raised"):
        set_running_request_cap(context(full), cap=64, **(ARGUMENTS | {"cause": "kv_pressure"}))
    lower = set_running_request_cap(context(full), cap=16, **(ARGUMENTS | {"cause": "kv_pressure"}))
    assert isinstance(lower, Action)


def fragmented(**changes: Fact) -> Snapshot:
    calm = {Signal.FRAGMENTATION_RATIO: Fact(0.6, age_s=2.0), **kv(0.1), **running(2)}
    return pool({**calm, **{Signal[name.upper()]: fact for name, fact in changes.items()}}, {})


def test_a_worker_is_restarted_only_when_calm():
    arguments = {"target": "r0", "cause": "memory_fragmented", "reason": "60 % fragments"}
    action = restart_worker(context(fragmented()), **arguments)
    assert isinstance(action, Action)
    assert (action.before, action.after) == (0.0, 1.0)
    for busy in (fragmented(waiting=Fact(1.0)), fragmented(kv_usage_ratio=Fact(0.5))):
        with pytest.raises(NotApplicableError, match="not restarted now"):
            restart_worker(context(busy), **arguments)
        finding = next(f for f in diagnose(busy, context(busy)).findings if f.cause == "memory_fragmented")
        assert candidates(finding, context(busy)) == ()


def test_every_setting_has_a_skill_that_proposes_it():
    proposing = [one for one in SKILLS if one.effect == "propose"]
    assert len(proposing) == len(SETTINGS)


def finding(cause: str, target: str) -> Finding:
    return Finding(
        layer=Layer.ROUTING,
        cause=cause,
        claim="because.",
        severity=0.8,
        confidence=0.8,
        tunable=True,
        target=target,
        evidence={"token_time_ratio": 3.5, "fair_share_requests": 8.0, "usual_weight": 40.0},
    )


@pytest.mark.parametrize("cause", sorted(REMEDIES))
@pytest.mark.parametrize("target", ["r0", "fleet"])
def test_candidates_are_few_distinct_enabled_and_within_one_step(cause, target):
    enabled = frozenset(EVERY_SETTING - {"routing_policy"})
    found = candidates(finding(cause, target), context(SEEN, enabled=enabled))
    assert len(found) <= 25
    assert len({(a.setting, a.target, a.after) for a in found}) == len(found)
    for action in found:
        declared = action.declaration
        assert action.setting in enabled
        assert declared.problem_with(action.after) is None
        assert action.after != action.before
        if isinstance(action.after, float) and declared.step_ratio is not None and action.before < UNLIMITED:
            longest = max(declared.step_ratio * abs(action.before), declared.step_min)
            assert abs(action.after - action.before) <= longest + 1e-9


def test_what_is_not_tunable_has_no_candidates():
    out_of_reach = Finding(
        layer=Layer.EXTERNAL, cause="running_cap_binds", claim="x", severity=1.0, confidence=1.0, tunable=False
    )
    assert candidates(out_of_reach, context(SEEN)) == ()


@given(
    name=st.sampled_from([s.name for s in SETTINGS if not s.choices]),
    before=st.floats(0, 1),
    wanted=st.floats(-10, 2e6),
)
@settings(max_examples=200, deadline=None)
def test_a_step_stays_within_bounds(name, before, wanted):
    declared = setting_named(name)
    low, high = declared.low or 0.0, declared.high or 1.0
    held = low + before * (min(high, 10_000.0) - low)
    held = float(round(held)) if declared.integral else held
    assert declared.problem_with(within_step(declared, held, wanted)) is None


def test_a_forecast_is_told_with_its_interval_and_its_doubt():
    forecast = Forecast(60.0, {"ttft_p99_s": Predicted(3.0, 1.0, 0.8, 1.4)}, Trust.DOUBTED, "outside its range.")
    asked: list[Action] = []

    def predict(action: Action) -> Forecast:
        asked.append(action)
        return forecast

    arguments = {"setting": "running_request_cap", "target": "r0", "value": 64.0}
    (told,) = forecast_change(context(SEEN, forecast=predict), **arguments)
    assert asked[0].before == 32.0
    assert told.evidence["ttft_p99_s_high"] == 1.4
    assert "doubted" in told.claim
    with pytest.raises(NotApplicableError, match="no sound forecast"):
        forecast_change(context(SEEN), **arguments)


def test_episodes_are_recalled_for_a_present_cause():
    past = PastEpisode(
        cause="running_cap_binds",
        setting="running_request_cap",
        target="r0",
        before=32.0,
        after=64.0,
        ending="rolled_back",
        measured="worse",
        similarity_ratio=0.7,
        age_s=3600.0,
    )
    (told,) = recall_episodes(context(SEEN, recall=lambda _cause: [past]), cause="running_cap_binds")
    assert "rolled_back, measured worse" in told.claim
    assert told.severity == 0.0
    assert recall_episodes(context(SEEN), cause="running_cap_binds") == ()
