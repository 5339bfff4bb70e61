"""When an engine serves: it completes a prompt, or is busy with others' and gets on."""

import itertools
import json

import httpx
import pytest
from page_server import Page, serving

from stack.local.processes import readiness

PROMPTS = "/v1/completions"


@pytest.fixture(autouse=True)
def brief(monkeypatch):
    monkeypatch.setattr(readiness, "TIMEOUT", httpx.Timeout(0.3))


def steps(marks, running=3):
    numbers = iter(marks)
    return lambda: Page((json.dumps({"running": running, "waiting": 0, "step": next(numbers)}).encode(),))


def trouble(answer, marks):
    pages = {PROMPTS: lambda: answer, "/flashvector/steps": steps(marks)}
    with serving(pages) as server:
        return readiness.completion_trouble(server.url, "smol", {})


SLOW = Page((b"{}",), pause_s=1.5)


def test_an_answer_is_enough():
    assert trouble(Page((b"{}",)), itertools.repeat(7)) is None


def test_without_an_answer_it_serves_while_it_makes_steps_for_others():
    assert trouble(SLOW, itertools.count()) is None
    assert "does not complete a prompt" in trouble(SLOW, itertools.repeat(7))


def test_a_refusal_is_trouble_however_busy_it_is():
    assert "answers a prompt with 404" in trouble(Page((b"{}",), status=404), itertools.count())


def test_nobody_there_is_trouble():
    assert "does not complete a prompt" in readiness.completion_trouble("http://127.0.0.1:9", "smol", {})
