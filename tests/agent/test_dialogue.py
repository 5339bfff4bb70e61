"""The bounded dialogue against a real socket: whatever the server does, it ends, and every call is answered."""

import time

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.tools import StructuredTool
from scripted_endpoint import ScriptedEndpoint, Turn

from agent.completion import ModelError
from agent.dialogue import Dialogue
from agent.events import AnswerText, SkillCalled
from agent.model import chat_model
from agent.settings import Settings
from agent.usage import Limits
from stack.errors import InputError


def look(window_s: int) -> str:
    """Look at the last `window_s` seconds."""
    if window_s > 600:
        raise InputError("window_s: at most 600")
    return f"looked at {window_s} s"


def finish(value: int) -> tuple[str, int]:
    """End with `value`."""
    return "noted", value


TOOLS = {
    "look": StructuredTool.from_function(look),
    "finish": StructuredTool.from_function(finish, response_format="content_and_artifact"),
}


USUAL = Limits(calls=4, seconds=20)


def dialogue(url: str, *, limits: Limits = USUAL, timeout_s: float = 5, **more) -> Dialogue:
    settings = Settings.load(llm_base_url=url, llm_model="scripted", llm_api_key="sk-canary-1")
    return Dialogue(chat_model(settings), TOOLS, frozenset({"finish"}), limits, timeout_s, **more)


def talk(endpoint: ScriptedEndpoint, **options):
    with endpoint.serve() as url:
        talking = dialogue(url, **options)
        events = list(talking.run([HumanMessage("go")]))
    assert not endpoint.breaches
    return talking, events


def failing(endpoint: ScriptedEndpoint, **options) -> str:
    with endpoint.serve() as url, pytest.raises(ModelError) as caught:
        list(dialogue(url, **options).run([HumanMessage("go")]))
    assert "\n" not in str(caught.value)
    assert not endpoint.breaches
    return str(caught.value)


def test_tools_are_called_and_an_ending_ends_with_its_result():
    endpoint = ScriptedEndpoint(
        Turn("Let me look.", calls=(("look", {"window_s": 60}),)), Turn(calls=(("finish", {"value": 7}),))
    )
    talking, events = talk(endpoint)
    assert talking.ending is not None and talking.ending.result == 7
    assert [event.name for event in events if isinstance(event, SkillCalled)] == ["look", "finish"]
    assert "".join(event.text for event in events if isinstance(event, AnswerText)) == "Let me look."
    assert endpoint.requests[1]["messages"][-1]["content"] == "<data>\nlooked at 60 s\n</data>"
    assert talking.usage.calls == 2 and talking.usage.tokens == 220


def test_parallel_calls_are_all_answered():
    endpoint = ScriptedEndpoint(
        Turn(calls=(("look", {"window_s": 1}), ("look", {"window_s": 2}))), Turn(calls=(("finish", {"value": 1}),))
    )
    talk(endpoint)
    answers = [m["content"] for m in endpoint.requests[1]["messages"][-2:]]
    assert answers == ["<data>\nlooked at 1 s\n</data>", "<data>\nlooked at 2 s\n</data>"]


@pytest.mark.parametrize(
    ("call", "complaint"),
    [
        (("look", '{"window_s": 12'), "not a JSON object"),
        (("look", "[60]"), "not a JSON object"),
        (("look", "null"), "not a JSON object"),
        (("look", {"window_s": "soon"}), "window_s"),
        (("look", {}), "window_s"),
        (("look", {"window_s": 601}), "at most 600"),
        (("erase_everything", {}), "no skill erase_everything"),
        (("look; rm -rf", {}), "no skill look__rm_-rf"),
    ],
)
def test_a_bad_call_is_answered_with_its_fault_and_may_be_mended(call, complaint):
    endpoint = ScriptedEndpoint(Turn(calls=(call,)), Turn(calls=(("finish", {"value": 3}),)))
    talking, _ = talk(endpoint)
    assert complaint in endpoint.requests[1]["messages"][-1]["content"]
    assert talking.ending is not None and talking.ending.result == 3


def test_a_cut_argument_is_never_completed_into_a_value_nobody_chose():
    endpoint = ScriptedEndpoint(Turn(calls=(("finish", '{"value": 12'),), finish="length"), forever=True)
    assert "calls is spent" in failing(endpoint, limits=Limits(calls=2))


@pytest.mark.parametrize("arguments", ['{"window_s": 60, "why": "beca', ""])
def test_an_answer_cut_at_its_longest_length_is_told_so(arguments):
    endpoint = ScriptedEndpoint(
        Turn(calls=(("look", arguments),), finish="length"), Turn(calls=(("finish", {"value": 2}),))
    )
    talking, _ = talk(endpoint)
    assert "be shorter" in endpoint.requests[1]["messages"][-1]["content"]
    assert endpoint.requests[0]["max_completion_tokens"] == Settings().llm_answer_tokens
    assert talking.ending is not None


def test_a_small_model_has_to_make_one_strict_call_a_turn():
    endpoint = ScriptedEndpoint(Turn(calls=(("finish", {"value": 2}),)))
    talk(endpoint, must_call=True)
    (sent,) = endpoint.requests
    assert (sent["tool_choice"], sent["parallel_tool_calls"]) == ("required", False)
    assert all(tool["function"]["strict"] for tool in sent["tools"])


def test_two_endings_at_once_are_both_refused():
    endpoint = ScriptedEndpoint(
        Turn(calls=(("finish", {"value": 1}), ("finish", {"value": 2}))), Turn(calls=(("finish", {"value": 2}),))
    )
    talking, _ = talk(endpoint)
    assert "exactly one" in endpoint.requests[1]["messages"][-1]["content"]
    assert talking.ending is not None and talking.ending.result == 2


def test_an_endless_tool_loop_stops_at_the_budget_of_calls():
    endpoint = ScriptedEndpoint(Turn(calls=(("look", {"window_s": 5}),)), forever=True)
    assert failing(endpoint) == "the budget of 4 skill calls is spent"
    assert len(endpoint.requests) == 5


def test_the_budget_of_tokens_holds_also_when_the_server_reports_none():
    endpoint = ScriptedEndpoint(Turn("x" * 4000, calls=(("look", {"window_s": 5}),), usage=False, fragment=500))
    assert "tokens is spent" in failing(endpoint, limits=Limits(tokens=1000))


@pytest.mark.parametrize("status", [400, 401, 404, 429, 500, 503])
def test_an_http_error_is_one_line(status):
    endpoint = ScriptedEndpoint(Turn(status=status), forever=True)
    assert f"HTTP {status}" in failing(endpoint)
    assert len(endpoint.requests) == (2 if status in (429, 500, 503) else 1)


def test_a_server_that_asks_to_wait_a_minute_does_not_make_us_wait():
    started_s = time.monotonic()
    failing(ScriptedEndpoint(Turn(status=429, headers={"Retry-After": "50"}), forever=True))
    assert time.monotonic() - started_s < 10


def test_a_passing_fault_is_tried_once_more():
    talking, _ = talk(ScriptedEndpoint(Turn(status=503), Turn(calls=(("finish", {"value": 9}),))))
    assert talking.ending is not None


def test_silence_ends_at_the_timeout():
    endpoint = ScriptedEndpoint(Turn("late", delay_s=1.5), forever=True)
    assert "in time" in failing(endpoint, timeout_s=0.3)


def test_a_slow_drip_ends_at_the_deadline():
    started_s = time.monotonic()
    endpoint = ScriptedEndpoint(Turn("drip " * 100, gap_s=0.2))
    assert "time for this answer is spent" in failing(endpoint, limits=Limits(seconds=1))
    assert time.monotonic() - started_s < 4


def test_a_stream_that_breaks_off_after_text_is_not_started_again():
    endpoint = ScriptedEndpoint(Turn("half an answer is worse than none", cut_after=3), forever=True)
    failing(endpoint)
    assert len(endpoint.requests) == 1


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings:UserWarning")
@pytest.mark.parametrize(
    "raw",
    ["<html>busy</html>", "data: {not json}\n\n", "data: {}\n\n", 'data: {"choices": 5}\n\n', "data: [1]\n\n", ""],
)
def test_junk_is_one_line(raw):
    failing(ScriptedEndpoint(Turn(raw=raw), forever=True))


def test_nobody_listens():
    with pytest.raises(ModelError, match="cannot be reached"):
        list(dialogue("http://127.0.0.1:9/v1", timeout_s=1).run([HumanMessage("go")]))


def test_a_model_that_only_speaks_is_nudged_once():
    endpoint = ScriptedEndpoint(Turn("I think"), Turn("I still think"))
    talking, _ = talk(endpoint, nudge="End with one call.")
    assert talking.ending is None
    assert len(endpoint.requests) == 2


def test_the_environment_of_other_programs_is_not_used(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-other")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    endpoint = ScriptedEndpoint(Turn(calls=(("finish", {"value": 9}),)))
    talk(endpoint)
    assert endpoint.keys == ["Bearer sk-canary-1"]
