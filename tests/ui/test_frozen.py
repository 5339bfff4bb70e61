"""A session that begins while changes are halted says so."""

import io

from rich.console import Console

from agent.settings import Settings
from agent.wiring import simulated_session
from harness.mode import Mode
from ui.sightings import tell_frozen


def test_it_is_told_at_the_start_that_changes_are_frozen_and_what_lifts_it():
    session = simulated_session(Settings.load(mode=Mode.APPROVE), minutes=5.0)
    console = Console(file=io.StringIO(), width=200)
    tell_frozen(session, console)
    assert console.file.getvalue() == ""
    session.stop("olga")
    tell_frozen(session, console)
    assert "Changes are frozen: stopped by olga" in console.file.getvalue()
    assert "flashvector unfreeze" in console.file.getvalue()
