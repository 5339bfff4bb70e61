"""The planner and the chat on a model that our own stack serves: the protocol, of whose quality nothing is claimed."""

import pytest
from live import Live, Say
from traffic import users

from agent.events import AnswerText, Degraded, SkillCalled
from agent.report import CycleReport
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


def test_chat_and_planner_call_skills_and_what_they_say_is_used_or_replaced_openly(live: Live, say: Say):
    live.control.write("running_request_cap", "r2", 1.0)
    with users(live.url, 12), live_session(settings_of(live)) as session:
        cycles = [session.cycle() for _ in range(4)]
        events = list(session.ask("why are answers slow?"))
        while session.elapsed_s < 240 and not any(asked(cycle) for cycle in cycles):
            cycles.append(session.cycle())
        session.leave("the test is over")
    called = [event for event in events if isinstance(event, SkillCalled)]
    failed = [event for event in events if isinstance(event, Degraded)]
    say(f"called {[(event.name, event.arguments) for event in called]}; {failed or 'answered by the model'}")
    assert called
    assert any(isinstance(event, AnswerText) and event.text.strip() for event in events)
    plan = next(cycle.plan for cycle in cycles if asked(cycle))
    assert plan is not None
    say(f"{plan.planner}: {plan.reason} {plan.degraded} {plan.usage}")
    assert plan.usage.calls > 0 or plan.degraded


def asked(cycle: CycleReport) -> bool:
    """Whether the model was asked for a plan."""
    return cycle.plan is not None and cycle.plan.usage.tokens > 0
