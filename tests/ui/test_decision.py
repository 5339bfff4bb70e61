"""Decisions as they are typed, in a simulated session."""

import io

import pytest
from rich.console import Console

from agent.settings import Settings
from agent.wiring import simulated_session
from ui.decision import decided
from ui.shown import Shown


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
    console = Console(file=written, width=200)
    assert decided(session, console, words, Shown(console))
    assert told in written.getvalue()


def test_a_question_is_no_decision(session):
    console = Console(file=io.StringIO())
    assert not decided(session, console, "who approves changes?", Shown(console))


def test_an_approval_of_what_was_never_shown_shows_it_and_approves_nothing():
    session = simulated_session(Settings.load(mode="approve"), load=0.6, faults=("slow_replica@300",), minutes=30.0)
    while not session.pending():
        session.cycle()
    written = io.StringIO()
    console = Console(file=written, width=200)
    shown, (pending,) = Shown(console), session.pending()
    decided(session, console, f"approve {pending.id}", shown)
    assert pending.action.setting in written.getvalue() and session.pending() == (pending,)
    decided(session, console, f"approve {pending.id}", shown)
    assert "carried out with the next cycle" in written.getvalue() and not session.pending()


def test_a_rejected_change_is_not_said_to_be_carried_out():
    session = simulated_session(Settings.load(mode="approve"), load=0.6, faults=("slow_replica@300",), minutes=30.0)
    while not session.pending():
        session.cycle()
    written = io.StringIO()
    console = Console(file=written, width=200)
    decided(session, console, f"reject {session.pending()[0].id}", Shown(console))
    assert "rejected" in written.getvalue() and "carried out" not in written.getvalue()
