"""What a session tells of one cycle."""

from collections.abc import Mapping
from dataclasses import dataclass

from agent.account import HEADLINE, action_text, change_text, envelope_text, record_text
from agent.planner import Plan
from agent.state import CycleState
from harness.diagnosis import Diagnosis
from harness.envelope.record import EnvelopeRecord
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
        envelope: the one in force, or that ended in this cycle.
        refused: why the planned move inside it was not made; empty when it was, None when none was planned.
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
    envelope: EnvelopeRecord | None = None
    refused: str | None = None

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
            return self.blind
        if self.ended:
            return record_text(self.ended[-1])
        if self.proposal is not None:
            return record_text(self.proposal)
        return self._inside() or self._standing()

    def _inside(self) -> str:
        """What happened to the envelope in this cycle; empty when nothing did."""
        if self.envelope is not None and self.envelope.leave is None:
            return envelope_text(self.envelope)
        if self.refused is None or self.plan is None or self.plan.action is None:
            return ""
        made = f"not moved: {self.refused}" if self.refused else "moved"
        return f"{made}: {change_text(self.plan.action)}"

    def _standing(self) -> str:
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
        envelope=state.get("envelope") or journal.envelopes.in_force(),
        refused=state.get("refused"),
    )


def _stage(state: CycleState, changed: tuple[Record, ...], journal: Journal) -> str:
    if state["blind"]:
        return "blind"
    if journal.frozen() is not None:
        return "frozen"
    return _trial({record.state for record in changed}, state, journal)


def _trial(standing: set[State], state: CycleState, journal: Journal) -> str:
    if standing & IN_FLIGHT:
        return "settling"
    if journal.envelopes.in_force() is not None:
        return "inside an envelope"
    if journal.records({State.AWAITING_APPROVAL}):
        return "waiting for a decision"
    if State.PROBATION in standing:
        return "in probation"
    return "healthy" if state["diagnosis"].healthy else "observing"
