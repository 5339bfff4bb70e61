import pytest
from scripted_endpoint import ScriptedEndpoint, Turn
from situations import ALLOWED, plan_context

from agent.chat import Chat, Exchange
from agent.chat_context import ChatContext
from agent.events import AnswerText, Degraded, Proposed, SkillCalled, Speaker
from agent.model import chat_model
from agent.settings import Settings
from agent.usage import Limits


def context(**changes) -> ChatContext:
    return ChatContext(
        planning=plan_context(**changes),
        changes="#1 running_request_cap on replica-2 16 -> 24 is kept",
        propose=lambda action: Proposed(action, ALLOWED, 7),
        user="ann",
    )


def answered(*turns, question="why is P99 high?", past=(), forever=False):
    endpoint = ScriptedEndpoint(*turns, forever=forever)
    with endpoint.serve() as url:
        settings = Settings.load(llm_base_url=url, llm_model="scripted")
        chat = Chat("search", chat_model(settings), Limits(seconds=10), 2)
        events = list(chat.answer(question, context(), past))
    assert not endpoint.breaches
    return events, endpoint


def plain(question):
    return list(Chat("search, no LLM configured").answer(question, context()))


def said(events):
    return "".join(event.text for event in events if isinstance(event, AnswerText))


def test_with_a_model_text_streams_and_read_skills_are_called():
    events, endpoint = answered(
        Turn("Looking. ", calls=(("inspect_cache", {}),)), Turn("KV is free; the cap binds.\nRaise it.")
    )
    assert events[0] == Speaker("llm")
    assert [event.name for event in events if isinstance(event, SkillCalled)] == ["inspect_cache"]
    assert said(events) == "Looking. KV is free; the cap binds.\nRaise it."
    assert len([event for event in events if isinstance(event, AnswerText)]) > 3
    assert endpoint.requests[0]["messages"][-1] == {"content": "why is P99 high?", "role": "user"}


def test_a_change_the_model_proposes_takes_the_path_to_a_person():
    call = ("request_change", {"setting": "running_request_cap", "target": "replica-2", "value": 24})
    events, _ = answered(Turn(calls=(call,)), question="raise the cap of replica-2 to 24")
    proposed = next(event for event in events if isinstance(event, Proposed))
    assert proposed.action.requested_by == "ann" and proposed.action.after == 24
    assert "waits for an approval as number 7" in said(events)


def test_earlier_exchanges_are_told_again():
    _, endpoint = answered(Turn("yes"), past=[Exchange("is it slow?", "it is")])
    assert [m["content"] for m in endpoint.requests[0]["messages"][1:3]] == ["is it slow?", "it is"]


@pytest.mark.parametrize("turn", [Turn(status=500), Turn(raw="junk"), Turn("x", delay_s=3)])
def test_a_model_that_fails_is_named_and_the_answer_comes_from_the_diagnosis(turn):
    events, _ = answered(turn, forever=True)
    assert any(isinstance(event, Degraded) for event in events)
    assert "LLM" in said(events) and "running_cap_binds" in said(events)


def test_markup_of_a_model_is_not_passed_on():
    events, _ = answered(Turn("<form><button>Approve</button> [x](http://evil)"))
    assert not set("<>[]") & set(said(events))


@pytest.mark.parametrize("question", ["why is P99 high?", "what is the bottleneck"])
def test_without_a_model_the_diagnosis_answers(question):
    events = plain(question)
    assert events[0] == Speaker("search, no LLM configured")
    text = said(events)
    assert "TTFT P99 4 s of 1.09 s promised (above)" in text
    assert "batching running_cap_binds on fleet" in text


def test_without_a_model_changes_missing_and_help():
    assert "is kept" in said(plain("what did you change?"))
    assert "device_free_bytes" in said(plain("which signals are missing?"))
    assert "did not understand" in said(plain("tell me a joke"))


def test_what_if_reads_the_value_in_force_and_changes_nothing():
    events = plain("what would running_request_cap 24 on replica-2 do?")
    assert "16 to 24" in said(events) and "Nothing was changed" in said(events)
    assert not any(isinstance(event, Proposed) for event in events)


def test_a_wish_is_proposed():
    proposed = [event for event in plain("set running_request_cap on replica-2 to 24") if isinstance(event, Proposed)]
    assert len(proposed) == 1 and proposed[0].action.before == 16


@pytest.mark.parametrize(
    ("wish", "says"),
    [
        ("set running_request_cap on replica-2 to 0", "must lie in"),
        ("set running_request_cap on replica-2 to 2.5", "whole number"),
        ("set tokens_per_step to 1024", "not known"),
    ],
)
def test_a_wish_that_cannot_be_tried_says_why(wish, says):
    assert says in said(plain(wish))
