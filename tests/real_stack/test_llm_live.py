"""The planner and the chat on a model that our own stack serves: the protocol, of whose quality nothing is claimed."""

import pytest
from live import Live, Say
from traffic import users

from agent.events import AnswerText, Degraded, SkillCalled
from agent.settings import Settings
from agent.wiring import live_session

pytestmark = pytest.mark.real_stack

SPEAKER = "r1"
"""The replica that is asked, past the gateway, so that no queue is before it."""


def settings_of(live: Live) -> Settings:
    return Settings.load(
        live.file,
        mode="approve",
        planner="llm",
        llm_base_url=f"{live.url_of(SPEAKER)}/v1",
        llm_model="smol",
        llm_tool_choice="required",
        llm_timeout_s=120.0,
        llm_seconds=240.0,
        llm_tokens=60_000,
        llm_answer_tokens=300,
    )


def test_the_chat_calls_skills_and_answers(live: Live, say: Say):
    with users(live.url, 4), live_session(settings_of(live)) as session:
        for _ in range(4):
            session.cycle()
        events = list(session.ask("why are answers slow?"))
    called = [event for event in events if isinstance(event, SkillCalled)]
    failed = [event for event in events if isinstance(event, Degraded)]
    say(f"called {[(event.name, event.arguments) for event in called]}; {failed or 'answered by the model'}")
    assert called
    assert any(isinstance(event, AnswerText) and event.text.strip() for event in events)


def test_the_planner_is_asked_and_its_plan_passes_the_gate_or_is_replaced_openly(live: Live, say: Say):
    live.control.write("running_request_cap", "r2", 1.0)
    with users(live.url, 12), live_session(settings_of(live)) as session:
        plan = None
        while session.elapsed_s < 200 and (plan is None or not plan.usage.tokens):
            plan = session.cycle().plan or plan
        session.leave("the test is over")
    assert plan is not None
    assert plan.usage.tokens > 0, plan
    say(f"{plan.planner}: {plan.reason} {plan.degraded} {plan.usage}")
    assert plan.usage.calls > 0 or plan.degraded
