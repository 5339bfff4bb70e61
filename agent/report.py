"""What a session tells of one cycle."""

from collections.abc import Mapping
from dataclasses import dataclass

from agent.account import HEADLINE, action_text, record_text
from agent.planner import Plan
from agent.state import CycleState
from harness.diagnosis import Diagnosis
from harness.journal.journal import Journal
from harness.journal.record import IN_FLIGHT, OPEN, Record, State
from harness.verdict import Verdict
from stack.snapshot import Signal, Snapshot


@dataclass(frozen=True, kw_only=True)
class CycleReport:
    """One cycle, for people and for evals.

    Attributes:
        number: counted from 1.
        snapshot, diagnosis: what was seen and what it means.
        blind: why nothing could be read; empty when something could.
        plan: None when no plan was made because a change settles, changes are frozen or we are blind.
        verdict: the gate's ruling on the plan's action.
        proposal: the row made of it.
        changed: open changes, and those that ended in this cycle, as they are now.
        stage: where the loop stands, in one or two words.
    """

    number: int
    snapshot: Snapshot
    diagnosis: Diagnosis
    blind: str
    plan: Plan | None
    verdict: Verdict | None
    proposal: Record | None
    changed: tuple[Record, ...]
    stage: str

    @property
    def facts(self) -> Mapping[Signal, float]:
        """The fleet's headline numbers that were measured."""
        return {signal: value for signal in HEADLINE if (value := self.snapshot.value(signal)) is not None}

    @property
    def ended(self) -> tuple[Record, ...]:
        """Changes that came to an end in this cycle."""
        return tuple(record for record in self.changed if not record.is_open)

    @property
    def summary(self) -> str:
        """The cycle in one line."""
        if self.blind:
            return f"blind: {self.blind}"
        if self.ended:
            return record_text(self.ended[-1])
        if self.proposal is not None:
            return record_text(self.proposal)
        if self.changed:
            return record_text(self.changed[-1])
        if self.plan is not None and self.plan.action is not None:
            return f"already proposed: {action_text(self.plan.action)}"
        return self.plan.degraded or self.plan.reason if self.plan is not None else self.stage


def report_of(number: int, state: CycleState, journal: Journal) -> CycleReport:
    """The report of the cycle that ended in `state`."""
    touched = {record.id for record in (*state.get("executed", ()), *state["verified"])}
    opened = {record.id: record for record in journal.records(OPEN)}
    now = opened | {action_id: journal.record(action_id) for action_id in touched - opened.keys()}
    changed = tuple(record for _, record in sorted(now.items()))
    proposal = state.get("proposal")
    return CycleReport(
        number=number,
        snapshot=state["snapshot"],
        diagnosis=state["diagnosis"],
        blind=state["blind"],
        plan=state.get("plan"),
        verdict=state.get("verdict"),
        proposal=None if proposal is None else journal.record(proposal.id),
        changed=changed,
        stage=_stage(state, changed, journal),
    )


def _stage(state: CycleState, changed: tuple[Record, ...], journal: Journal) -> str:
    standing = {record.state for record in changed}
    if state["blind"]:
        return "blind"
    if journal.frozen() is not None:
        return "frozen"
    if standing & IN_FLIGHT:
        return "settling"
    if journal.records({State.AWAITING_APPROVAL}):
        return "waiting for a decision"
    if State.PROBATION in standing:
        return "in probation"
    return "healthy" if state["diagnosis"].healthy else "observing"
