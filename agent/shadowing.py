"""What is kept of a cycle in shadow mode, so that its decision can be judged when its window has passed."""

from collections.abc import Iterator

from agent.desk import Desk
from agent.state import CycleState
from harness.action import Action
from harness.journal.record import State
from harness.shadow.choice import Choice
from harness.shadow.neighbours import neighbours
from harness.verdict import Ruling
from skills.candidates import candidates

MOST_ALTERNATIVES = 25
WORTH = "minimum_gain"
"""The gate's rule on whether a change is worth making: that is what hindsight judges, so it takes no choice away."""


def watch_choice(state: CycleState, desk: Desk) -> None:
    """Begin to watch this cycle's decision, if it made one."""
    choice = _choice(state, desk)
    if desk.waiting_choices is not None and choice is not None:
        desk.waiting_choices.add(choice)


def _choice(state: CycleState, desk: Desk) -> Choice | None:
    """The cycle's decision: a proposal that was shadowed, or to change nothing while no other decision is watched.

    A planner that could not do its work has decided nothing by itself.
    """
    waiting, plan, snapshot = desk.waiting_choices, state.get("plan"), state["snapshot"]
    if waiting is None or plan is None or plan.degraded or state["blind"] or snapshot.time_s is None:
        return None
    proposal = state.get("proposal")
    if plan.action is not None and (proposal is None or proposal.state is not State.SHADOWED):
        return None
    if plan.action is None and waiting.choices:
        return None
    return Choice(
        action=plan.action,
        action_id=None if proposal is None else proposal.id,
        legal=_legal(state, desk),
        snapshot=snapshot,
        decided_s=snapshot.time_s,
        window_s=waiting.window_s(snapshot),
        planner=plan.planner.partition(",")[0],
    )


def _legal(state: CycleState, desk: Desk) -> tuple[Action, ...]:
    """The first changes that the gate would have let pass, whatever they promised."""
    snapshot, history = state["snapshot"], desk.executor.history()
    found: list[Action] = []
    for action in _alternatives(state, desk):
        hits = desk.check(action, snapshot, history=history).hits
        if not any(hit.ruling is Ruling.DENY and hit.rule != WORTH for hit in hits):
            found.append(action)
        if len(found) == MOST_ALTERNATIVES:
            break
    return tuple(found)


def _alternatives(state: CycleState, desk: Desk) -> Iterator[Action]:
    """What the problems ask for; where there are none, the values next to those in force."""
    problems, snapshot = state["diagnosis"].problems, state["snapshot"]
    for finding in problems:
        yield from candidates(finding, desk.skills(snapshot))
    if not problems:
        yield from neighbours(snapshot, desk.policy.enabled)
