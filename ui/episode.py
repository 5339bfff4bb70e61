"""One ended change: the documented JSON shape, and a line for people."""

from rich.markup import escape

from agent.account import STANDING
from harness.journal.record import ENDED, Record
from harness.outcome import Ending
from stack.catalogue import in_words
from ui.report import Json, action_json, plain, verification_json

COLOURS = {Ending.KEPT: "green", Ending.ROLLED_BACK: "yellow", Ending.NOTHING_DONE: "dim", Ending.NEEDS_PERSON: "red"}


def episode_json(record: Record, start_s: float) -> Json:
    """One entry of `run --json`'s `episodes`; times are seconds since the run began at `start_s`."""
    outcome = record.outcome
    return {
        **action_json(record.action),
        "cause": record.action.cause,
        "layer": str(record.action.layer),
        "proposed_s": plain(record.proposed_s - start_s),
        "applied_s": None if record.applied_s is None else plain(record.applied_s - start_s),
        "ended_s": None if record.ended_s is None else plain(record.ended_s - start_s),
        "state": str(record.state),
        "outcome": str(outcome.ending) if outcome else None,
        "outcome_reason": outcome.reason if outcome else "",
        "holds": plain(outcome.holds) if outcome else None,
        "verification": verification_json(record.verification),
    }


def episode_text(record: Record, start_s: float) -> str:
    """The same in one line of Rich markup."""
    action, outcome = record.action, record.outcome
    ending = outcome.ending if outcome and record.state in ENDED else Ending.NOTHING_DONE
    standing = ending if record.state in ENDED else STANDING.get(record.state, str(record.state))
    at_min = ((record.applied_s or record.proposed_s) - start_s) / 60
    colour = COLOURS[ending]
    return (
        f"{at_min:5.1f} min  [{colour}]{standing}[/{colour}]  {escape(action.setting)} on {escape(action.target)}: "
        f"{in_words(action.before)} -> {in_words(action.after)}. {escape(outcome.reason if outcome else '')}"
    )
