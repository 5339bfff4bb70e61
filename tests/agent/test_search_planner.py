import pytest
from situations import ALLOWED, plan_context

from agent.persistence import Persistence
from agent.search_planner import SearchPlanner, best_first, rivals
from harness.action import Action, Forecast, Predicted
from harness.diagnosis import Diagnosis, Finding
from harness.mode import Mode
from harness.verdict import RuleResult, Ruling, Verdict
from stack.layer import Layer


def gains(share, e2e=(10.0, 10.0)):
    low, high = share
    effects = {"slo_share": Predicted(low, high, high, high), "e2e_p99_s": Predicted(*e2e, e2e[1], e2e[1])}
    return Forecast(60.0, effects)


def by_value(action):
    """More is better up to 24, and worse above."""
    return gains((0.8, 0.8 + (action.after - 16) / 100 if action.after <= 24 else 0.7))


def planned(**changes):
    return SearchPlanner().plan(plan_context(**changes))


def test_the_candidate_with_the_best_forecast_is_chosen_and_the_others_are_told():
    plan = planned(forecast=by_value)
    assert plan.action is not None and plan.action.setting == "running_request_cap"
    assert plan.action.after == max(c.action.after for c in plan.considered if c.kept and c.action.after <= 24)
    assert plan.action.forecast is not None
    assert all(c.why for c in plan.considered)
    assert plan.planner == "search, no LLM configured"


def test_nothing_is_done_about_health():
    plan = planned(diagnosis=Diagnosis(()))
    assert plan.action is None and plan.reason == "nothing needs attention"


def test_a_problem_must_last():
    found = plan_context().diagnosis.problems[0]
    mild = Diagnosis((Finding(**{**vars(found), "severity": 0.6}),))
    plan = planned(diagnosis=mild, persistence=Persistence().after(mild), forecast=by_value)
    assert plan.action is None and "last longer" in plan.reason


def test_what_was_undone_or_asked_is_not_tried_again():
    first = planned(forecast=by_value).action
    again = planned(forecast=by_value, undone=frozenset({(first.setting, first.target, first.after)})).action
    assert again is None or again.after != first.after
    assert planned(forecast=by_value, asked=frozenset({(first.setting, first.target)})).action is None


@pytest.mark.parametrize("rule", ["cooldown", "memory_headroom"])
def test_what_the_gate_denies_is_dropped_with_its_rule(rule):
    denied = Verdict((RuleResult(rule, Ruling.DENY, "because"),))
    plan = planned(check=lambda _: denied, forecast=by_value)
    assert plan.action is None
    assert all(rule in c.why for c in plan.considered)


def test_no_forecast_is_made_for_what_is_out_of_the_question():
    denied = Verdict((RuleResult("cooldown", Ruling.DENY, "too soon"),))
    asked = []
    planned(check=lambda _: denied, forecast=asked.append)
    assert asked == []


def test_in_auto_mode_one_question_at_a_time_is_put_to_a_person():
    ask = Verdict((RuleResult("trip", Ruling.ASK, "two rollbacks"),))
    waiting = frozenset({("routing_weight", "replica-1")})
    assert planned(check=lambda _: ask, forecast=by_value, asked=waiting, mode=Mode.AUTO).action is None
    assert planned(check=lambda _: ask, forecast=by_value, mode=Mode.AUTO).action is not None
    assert planned(check=lambda _: ALLOWED, forecast=by_value, asked=waiting, mode=Mode.AUTO).action is not None


def finding(severity, tunable, advice=""):
    return Finding(
        layer=Layer.EXTERNAL,
        cause="gpu_throttling",
        claim="All GPUs are slow.",
        severity=severity,
        confidence=1.0,
        tunable=tunable,
        advice=advice,
    )


def test_a_symptom_is_not_tuned_while_a_far_bigger_cause_is_out_of_reach():
    cause, symptom = finding(0.9, False, "Ask the hardware team."), finding(0.35, True)
    found = Diagnosis((cause, symptom))
    assert rivals(plan_context(diagnosis=found)) == ()
    plan = planned(diagnosis=found)
    assert plan.action is None and plan.not_tunable == (cause,)
    assert "Ask the hardware team." in plan.reason


def action(setting, layer, gain):
    return Action(
        setting=setting,
        target="fleet",
        before=10.0,
        after=20.0,
        cause="c",
        layer=layer,
        reason="",
        forecast=gains((0.5, 0.5 + gain)),
    )


def test_a_remedy_at_the_cause_comes_before_a_guard_that_hides_it():
    guard = action("queue_limit_requests", Layer.BATCHING, 0.3)
    weak, strong = (action("running_request_cap", Layer.BATCHING, gain) for gain in (0.05, 0.1))
    assert best_first([weak, guard, strong]) == (strong, weak, guard)
    assert best_first([]) == ()
