"""The planner with a model behind a real socket: whatever the model does, at most one gated action comes out."""

import json

import pytest
from scripted_endpoint import ScriptedEndpoint, Turn
from situations import lasting, plan_context

from agent.llm_planner import LlmPlanner
from agent.model import chat_model
from agent.persistence import Persistence
from agent.search_planner import SearchPlanner
from agent.settings import Settings
from agent.usage import Limits

WHY = {"cause": "running_cap_binds", "reason": "16 of 16 slots are taken while 32 requests wait"}
PROPOSE = ("set_running_request_cap", {"target": "replica-2", "cap": 24, **WHY})
CANARY = "canary-key-0123456789"


def planned(*turns, context=None, limits=None, forever=False):
    endpoint = ScriptedEndpoint(*turns, forever=forever)
    with endpoint.serve() as url:
        settings = Settings.load(llm_base_url=url, llm_model="scripted", llm_api_key=CANARY)
        planner = LlmPlanner(chat_model(settings), limits=limits or Limits(seconds=20), timeout_s=2)
        plan = planner.plan(context or plan_context())
    assert not endpoint.breaches
    assert CANARY not in json.dumps(endpoint.requests)
    return plan, endpoint


def test_reads_then_proposes():
    plan, endpoint = planned(Turn(calls=(("inspect_batching", {}),)), Turn("The cap binds.", calls=(PROPOSE,)))
    assert plan.action is not None
    assert (plan.action.setting, plan.action.target, plan.action.after) == ("running_request_cap", "replica-2", 24)
    assert plan.action.before == 16 and plan.action.tainted
    assert plan.action.comment == "16 of 16 slots are taken while 32 requests wait The cap binds."
    assert "KV use is only 30%" in plan.action.reason
    assert plan.usage.calls == 2 and plan.usage.tokens == 220
    assert not plan.degraded
    assert "tool" in {message["role"] for message in endpoint.requests[1]["messages"]}


def test_search_gives_values_and_what_became_of_them():
    plan, endpoint = planned(
        Turn(calls=(("search_values", {"problem": 1}),)), Turn(calls=(("no_change", {"reason": "thin evidence"}),))
    )
    assert "running_request_cap" in endpoint.requests[1]["messages"][-1]["content"]
    assert plan.considered
    assert (
        plan.action is None
        and plan.reason == "no change; the model says (unverified): thin evidence"
        and not plan.degraded
    )


def test_not_tunable_names_whom_to_ask():
    arguments = {"problem": 1, "reason": "the GPU throttles", "ask": "the hardware team"}
    plan, _ = planned(Turn(calls=(("not_tunable", arguments),)))
    assert plan.action is None
    assert plan.not_tunable[0].advice == "the model says (unverified): the hardware team"
    assert not plan.not_tunable[0].tunable


def test_a_problem_that_does_not_exist_cannot_be_named():
    arguments = {"problem": 9, "reason": "x", "ask": "y"}
    plan, endpoint = planned(Turn(calls=(("not_tunable", arguments),)), Turn(calls=(("no_change", {"reason": "r"}),)))
    assert "expected 1 to 1, found 9" in endpoint.requests[1]["messages"][-1]["content"]
    assert plan.not_tunable == ()


@pytest.mark.parametrize(
    "turn",
    [
        Turn(status=500),
        Turn(status=400),
        Turn(status=429),
        Turn(calls=(("inspect_batching", {}),)),
        Turn(calls=((PROPOSE[0], '{"target": "replica-2", "cap": 24'),)),
        Turn(calls=((PROPOSE[0], {"target": "replica-2", "cap": "NaN", **WHY}),)),
        Turn(calls=((PROPOSE[0], {"target": "replica-9", "cap": 24, **WHY}),)),
        Turn(calls=((PROPOSE[0], {"target": "replica-2", "cap": -5, **WHY}),)),
        Turn(calls=(("run_shell", {"command": "reboot"}),)),
        Turn(calls=(PROPOSE, PROPOSE)),
        Turn("I would raise the cap to 24."),
        Turn("x", cut_after=2),
        Turn("late", delay_s=3),
        Turn(raw="<html>"),
    ],
)
def test_whatever_goes_wrong_is_one_clear_line_and_search_chooses_instead(turn):
    plan, _ = planned(turn, forever=True, limits=Limits(calls=3, seconds=10))
    assert plan.planner == "search, the llm failed"
    assert plan.action == SearchPlanner().plan(plan_context()).action
    assert plan.degraded and "\n" not in plan.degraded


def test_a_value_that_was_undone_lately_is_not_proposed_again():
    context = plan_context(undone=frozenset({("running_request_cap", "replica-2", 24.0)}))
    plan, _ = planned(Turn(calls=(PROPOSE,)), context=context)
    assert plan.action is None and "undone" in plan.reason


def test_the_model_is_not_asked_before_a_problem_has_lasted():
    context = plan_context(persistence=Persistence())
    plan, endpoint = planned(Turn("unused"), context=context)
    assert plan.action is None and endpoint.requests == []
    assert lasting(context.diagnosis).holds(context.diagnosis.problems[0])


def test_text_of_a_model_is_a_comment_and_made_safe():
    plan, _ = planned(Turn("<b>Approve</b> now\n```", calls=(PROPOSE,)))
    assert plan.action is not None
    assert not set("<>`\n") & set(plan.action.comment)
    assert "Approve" not in plan.action.reason
