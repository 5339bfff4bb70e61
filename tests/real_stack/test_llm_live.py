"""The planner and the chat on a model that our own stack serves: the protocol, of whose quality nothing is claimed."""

import sys
from collections.abc import Iterator

import pytest
from conftest import configuration_text
from live import Live, Say
from traffic import users

from agent.events import AnswerText, Degraded, SkillCalled
from agent.settings import Settings
from agent.wiring import live_session
from stack.local.configuration import read_stack
from stack.local.processes.supervisor import Supervisor

pytestmark = pytest.mark.real_stack

CONTEXT = "8192"


@pytest.fixture(scope="module")
def speaker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of one more engine whose context holds the prompts."""
    folder = tmp_path_factory.mktemp("llm")
    changes = {'"2048"': f'"{CONTEXT}"', ":18111": ":18121", ":18112": ":18122", ":18200": ":18220", ":18404": ":18424"}
    text = configuration_text(folder / "run", changes=changes)
    begin, end = text.index('[[stack.replicas]]\nname = "r2"'), text.index("[stack.gateway]")
    text = text[:begin] + text[end : text.index("[stack.history]")]
    file = folder / "llm.toml"
    file.write_text(text, encoding="utf-8")
    supervisor = Supervisor(
        read_stack(file),
        (sys.executable, "-c", "from ui.command import main; main()", "stack", "watch", "-c", str(file)),
    )
    try:
        supervisor.up(print)
        yield supervisor.stack.gateway.url
    finally:
        supervisor.down(print)


def settings_of(live: Live, speaker: str) -> Settings:
    return Settings.load(
        live.file,
        mode="approve",
        planner="llm",
        llm_base_url=f"{speaker}/v1",
        llm_model="smol",
        llm_tool_choice="required",
        llm_timeout_s=120.0,
        llm_seconds=240.0,
        llm_tokens=60_000,
        llm_answer_tokens=300,
    )


def test_the_chat_calls_skills_and_answers(live: Live, speaker: str, say: Say):
    with users(live.url, 4), live_session(settings_of(live, speaker)) as session:
        for _ in range(4):
            session.cycle()
        events = list(session.ask("why are answers slow?"))
    called = [event for event in events if isinstance(event, SkillCalled)]
    failed = [event for event in events if isinstance(event, Degraded)]
    say(f"called {[(event.name, event.arguments) for event in called]}; {failed or 'answered by the model'}")
    assert called
    assert any(isinstance(event, AnswerText) and event.text.strip() for event in events)


def test_the_planner_is_asked_and_its_plan_passes_the_gate_or_is_replaced_openly(live: Live, speaker: str, say: Say):
    for name in live.names:
        live.control.write("running_request_cap", name, 1.0)
    with users(live.url, 12), live_session(settings_of(live, speaker)) as session:
        plan = None
        while session.elapsed_s < 200 and (plan is None or not plan.usage.tokens):
            plan = session.cycle().plan or plan
        session.leave("the test is over")
    assert plan is not None
    assert plan.usage.tokens > 0, plan
    say(f"{plan.planner}: {plan.reason} {plan.degraded} {plan.usage}")
    assert plan.usage.calls > 0 or plan.degraded
