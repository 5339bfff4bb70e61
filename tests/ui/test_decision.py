"""Decisions as they are typed, in a simulated session."""

import io

import pytest
from rich.console import Console

from agent.settings import Settings
from agent.wiring import simulated_session
from ui.decision import decided


@pytest.fixture(scope="module")
def session():
    return simulated_session(Settings.load(mode="approve"), minutes=5.0)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("approve 99", "There is no proposal 99. None waits for a decision."),
        ("reject", "Type approve NUMBER or reject NUMBER."),
        ("approve it", "Type approve NUMBER or reject NUMBER."),
    ],
)
def test_a_decision_about_nothing_is_explained(session, words, told):
    written = io.StringIO()
    assert decided(session, Console(file=written, width=200), words)
    assert told in written.getvalue()


def test_a_question_is_no_decision(session):
    assert not decided(session, Console(file=io.StringIO()), "who approves changes?")
