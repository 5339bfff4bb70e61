"""What one cycle knows, one field a stage."""

from typing import TypedDict

from agent.persistence import Persistence
from agent.planner import Plan
from harness.diagnosis import Diagnosis
from harness.envelope.record import EnvelopeRecord
from harness.journal.record import Record
from harness.verdict import Verdict
from stack.snapshot import Snapshot


class CycleState(TypedDict, total=False):
    """One invocation of the graph is one cycle. Values are frozen; effects live in the journal, not here.

    Fields:
        key: names this cycle in the journal, so that a node that runs again proposes the same row.
        planning: whether new changes may be thought of.
        persistence: how long problems have held, in and out.
        snapshot, blind: what observe read, and why it could not.
        diagnosis, plan, verdict, proposal: what the stages of those names made.
        executed, verified: rows that moved in this cycle.
        refused: why the planned move inside the envelope was not made; empty when it was.
        envelope: the one that ended in this cycle.
    """

    key: str
    planning: bool
    persistence: Persistence
    snapshot: Snapshot
    blind: str
    diagnosis: Diagnosis
    plan: Plan
    verdict: Verdict
    proposal: Record
    executed: tuple[Record, ...]
    verified: tuple[Record, ...]
    refused: str
    envelope: EnvelopeRecord | None
