"""Limits of an engine by their settings' names: read, set, refused; and what is said when it cannot be done."""

from collections.abc import Iterator
from pathlib import Path

import contract
import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted_engine import ScriptedEngine, scripted_engine

from stack.catalogue import setting_named
from stack.errors import ReadBackError, RefusedError, UnknownSettingError, UnreachableError
from stack.local.configuration import LocalStack
from stack.local.engine.client import EngineClient, NotTakenError
from stack.local.engine.control import EngineControl
from stack.local.engine.facts import EngineReader
from stack.local.engine.limits import LIMIT_OF, share
from stack.local.processes.heartbeat import progress
from stack.local.processes.replica_process import engine_launch
from stack.local.reading.engine_facts import EngineFacts
from stack.problem import first_problem

NOBODY = "http://127.0.0.1:9"


def stack_of(*urls: str, token: str = "", read_token: str = "") -> LocalStack:
    replicas = [{"name": f"r{number}", "url": url} for number, url in enumerate(urls, start=1)]
    gateway = {"url": "http://127.0.0.1:1", "metrics_url": "http://127.0.0.1:2"}
    engine = {"command": ["vllm"], "model": "m"}
    tokens = {"engine_token": token, "engine_read_token": read_token}
    return LocalStack(run_folder=Path("run"), engine=engine, replicas=replicas, gateway=gateway, **tokens)


@pytest.fixture
def engine() -> Iterator[ScriptedEngine]:
    with scripted_engine() as one:
        yield one


@pytest.mark.parametrize("name", LIMIT_OF)
def test_writes_are_set_to_value(engine: ScriptedEngine, name: str):
    contract.check_a_write_is_set_to_value(EngineControl(stack_of(engine.url)), setting_named(name), "r1")


@pytest.mark.parametrize("name", LIMIT_OF)
def test_bad_values_are_refused(engine: ScriptedEngine, name: str):
    contract.check_bad_values_are_refused_and_nothing_changes(
        EngineControl(stack_of(engine.url)), setting_named(name), "r1"
    )
    assert all(method == "GET" for method, *_ in engine.asked)


def test_what_the_engine_was_not_started_for_is_refused_with_its_bounds(engine: ScriptedEngine):
    control = EngineControl(stack_of(engine.url))
    with pytest.raises(
        RefusedError, match=r"r1: this engine takes 1 to 32 requests as it was started, not 64.*holds 32"
    ):
        control.write("running_request_cap", "r1", 64.0)
    engine.limits["tokens_per_step"] = 16
    with pytest.raises(RefusedError, match="20 running requests need 20 tokens per step on r1, not 16"):
        control.write("running_request_cap", "r1", 20.0)


def test_an_engine_that_does_not_do_it_is_found_out(engine: ScriptedEngine):
    engine.stubborn = True
    with pytest.raises(ReadBackError, match=r"wrote 4.*now holds 32") as caught:
        EngineControl(stack_of(engine.url)).write("running_request_cap", "r1", 4.0)
    assert caught.value.holds == 32.0


@pytest.mark.parametrize(
    ("status", "body", "error", "words"),
    [
        (404, '{"detail": "Not Found"}', UnknownSettingError, "runs without the flashvector plugin"),
        (403, "{}", UnreachableError, "engine_token"),
        (503, '{"errors": {"engine": "dead"}}', UnreachableError, "answered 503: engine: dead"),
        (200, "no JSON", UnreachableError, "no JSON object"),
        (200, "[]", UnreachableError, "no JSON object"),
        (200, '{"limits": {}}', UnreachableError, "did not tell"),
    ],
)
def test_an_engine_that_cannot_answer_is_told_apart(
    engine: ScriptedEngine, status: int, body: str, error: type[Exception], words: str
):
    engine.status, engine.body = status, body
    control = EngineControl(stack_of(engine.url))
    for act in (control.read, lambda s, t: control.write(s, t, 4.0)):
        with pytest.raises(error, match=words):
            act("running_request_cap", "r1")


def test_a_dead_engine_is_unreachable_and_named():
    with pytest.raises(
        UnreachableError, match=r"r1: no answer from its engine at http://127.0.0.1:9/flashvector/limits"
    ):
        EngineControl(stack_of(NOBODY)).read("running_request_cap", "r1")


def test_a_reading_client_cannot_write(engine: ScriptedEngine):
    with pytest.raises(NotTakenError, match="only reads"):
        EngineClient.of(stack_of(engine.url), "r1").change_limits({"running_request_cap": 4})
    assert engine.asked == []


WRITING, READING = "a-token-for-all", "a-token-for-reading"


@pytest.mark.parametrize(
    ("token", "read_token", "control_shows", "onlooker_shows"),
    [
        ("", "", None, None),
        (WRITING, "", f"Bearer {WRITING}", f"Bearer {WRITING}"),
        (WRITING, READING, f"Bearer {WRITING}", f"Bearer {READING}"),
        ("", READING, None, f"Bearer {READING}"),
    ],
)
def test_who_only_looks_shows_the_token_for_reading(
    engine: ScriptedEngine, token: str, read_token: str, control_shows: str | None, onlooker_shows: str | None
):
    stack = stack_of(engine.url, token=token, read_token=read_token)
    control = EngineControl(stack)
    control.write("tokens_per_step", "r1", 1024.0)
    assert {shown for *_, shown in engine.asked} == {control_shows}
    engine.asked.clear()
    with httpx.Client() as client:
        for one in (stack, stack.for_reading()):
            EngineReader(one).facts()
            EngineFacts(one, one.replica("r1"), client).limits()
            progress(engine.url, one.engine_access(writes=False))
    assert len(engine.asked) >= 6 and {shown for *_, shown in engine.asked} == {onlooker_shows}


def test_a_stack_to_look_at_has_no_token_that_opens_everything():
    both = stack_of(NOBODY, token=WRITING, read_token=READING)
    assert both.for_reading().engine_access(writes=True) == {}
    assert stack_of(NOBODY, token=WRITING).for_reading().engine_access(writes=False)
    with pytest.raises(ValueError, match="expected another token") as caught:
        stack_of(NOBODY, token=WRITING, read_token=WRITING)
    assert WRITING not in first_problem(caught.value)


def test_an_engine_that_we_start_is_given_both_tokens(tmp_path: Path):
    named = stack_of(NOBODY, token=WRITING, read_token=READING)
    program = tmp_path / "vllm"
    program.touch(mode=0o755)
    stack = named.model_copy(
        update={"run_folder": tmp_path, "engine": named.engine.model_copy(update={"command": (str(program),)})}
    )
    given = engine_launch(stack, stack.replica("r1")).environment
    assert (given["FLASHVECTOR_VLLM_TOKEN"], given["FLASHVECTOR_VLLM_READ_TOKEN"]) == (WRITING, READING)
    without = engine_launch(stack.for_reading(), stack.replica("r1")).environment
    assert "FLASHVECTOR_VLLM_TOKEN" not in without


def test_facts_name_the_silent_and_the_degraded(engine: ScriptedEngine):
    engine.degraded = True
    facts = EngineReader(stack_of(engine.url, NOBODY)).facts()
    assert facts.settings["running_request_cap"] == {"r1": 32.0}
    assert facts.configuration["r1"]["running_request_cap_most"] == 32.0
    assert facts.configuration["r1"]["usable_kv_blocks_ratio_least"] == pytest.approx(64 / 1023)
    degraded, silent = facts.problems
    assert (
        degraded
        == "r1: the plugin gave up inside the engine, which runs with its boot limits: before a step: KeyError: 'x'"
    )
    assert silent.startswith("r2: no answer")


@given(st.integers(1, 200_000).flatmap(lambda whole: st.tuples(st.integers(1, whole), st.just(whole))))
def test_a_share_of_blocks_stands_for_exactly_those_blocks(part_and_whole: tuple[int, int]):
    part, whole = part_and_whole
    assert round(share(part, whole) * whole) == part


def test_a_share_reads_as_it_was_written():
    assert share(round(0.52 * 1023), 1023) == 0.52
