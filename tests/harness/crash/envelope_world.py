"""A world in which an envelope is opened and moved in; each write is looked up in the journal's file."""

import copy
import json
import sqlite3
from contextlib import closing, suppress
from dataclasses import dataclass, field

from crash_points import Points
from crash_world import CYCLE_S, LONGEST_CYCLES, PRE, Session, World, live
from scripted_stack import weight_action

from harness.approval import Approve
from harness.envelope.envelope import Envelope, Range
from harness.envelope.record import EnvelopeRecord, EnvelopeState
from harness.gate.envelope_check import check_envelope
from harness.journal.audit import audit
from harness.mode import Mode
from stack.setting import Value

EVERY_S = 5.0
FIRST, SECOND = 90.0, 80.0
WEIGHTS = Range(setting="routing_weight", low=40.0, high=120.0, step=10.0, every_s=EVERY_S, back_after_s=60.0)
ENVELOPE = Envelope(ranges=(WEIGHTS,), lasts_s=900.0, reason="keep replicas even", requested_by="olga")
ENDINGS = {EnvelopeState.KEPT, EnvelopeState.ROLLED_BACK, EnvelopeState.NOTHING_DONE, EnvelopeState.NEEDS_PERSON}


@dataclass
class EnvelopeWorld(World):
    """Where the value of each write is looked up in the file, as anybody can read it.

    Attributes:
        unwritten: writes whose value, or whose way back, was not in the file before them.
    """

    unwritten: list[str] = field(default_factory=list)

    def copy_to(self, path) -> "EnvelopeWorld":
        twin = super().copy_to(path)
        twin.unwritten = list(self.unwritten)
        return twin

    def _look(self, setting: str, target: str, value: Value) -> None:
        with (
            suppress(sqlite3.Error),
            closing(sqlite3.connect(f"file:{self.path}?mode=ro", uri=True, timeout=0)) as other,
        ):
            state, places, permit = other.execute("SELECT state, places, permit FROM envelope").fetchone()
            told = {place["target"]: place for place in json.loads(places)}[target]
            stored = {place["target"]: place["stored"] for place in json.loads(permit)["places"]}[target]
            committed = state == "open" and told["last"] == value and told["unsure_of"] is not None
            if not committed and value != stored:
                self.unwritten.append(f"{value} while {state}, {told}")


def move_in_it(session: Session) -> None:
    """Propose, allow, open, and two moves."""
    world, journal, executor = session.world, session.journal, session.executor
    executor.blocks.__dict__.update(copy.deepcopy(world.blocks).__dict__)
    snapshot, now_s = world.stack.snapshot(60.0), world.clock.now_s()
    verdict = check_envelope(ENVELOPE, snapshot, executor.history(), world.policy, mode=Mode.AUTO, now_s=now_s)
    proposed = journal.envelopes.propose(ENVELOPE, verdict, mode=Mode.AUTO, now_s=now_s)
    journal.envelopes.decide(proposed.id, Approve("olga", proposed.proposal.digest), now_s=now_s)
    executor.open_envelope(proposed.id, mode=Mode.AUTO, snapshot=snapshot)
    for before, after in ((PRE, FIRST), (FIRST, SECOND)):
        world.clock.sleep(EVERY_S)
        executor.move(weight_action(before, after), mode=Mode.AUTO)


def end_it(session: Session) -> None:
    """Cycles until none is in force."""
    for _ in range(LONGEST_CYCLES):
        if session.journal.envelopes.in_force() is None:
            return
        session.world.clock.sleep(CYCLE_S)
        seen = session._look()
        session.executor.supervise(seen)
        session.executor.watch_envelope(seen)


def healed(world: EnvelopeWorld) -> list[EnvelopeRecord]:
    """Restart without further faults, look at all promises, and what was proposed."""
    world.break_at(Points())
    found: list[EnvelopeRecord] = []

    def look(session: Session) -> None:
        found.extend(session.journal.envelopes.envelopes())
        problems = _broken_promises(world, found, session.journal.frozen())
        broken = audit(session.store).broken
        assert not problems and broken is None, (problems, broken)

    assert live(world, end_it, look)
    return found


def _broken_promises(world: EnvelopeWorld, records: list[EnvelopeRecord], frozen: str | None) -> list[str]:
    problems = list(world.unwritten)
    for record in records:
        if record.state in (EnvelopeState.AWAITING_APPROVAL, EnvelopeState.DENIED):
            continue  # it came to no approval before the end of the process
        if record.state not in ENDINGS:
            problems.append(f"envelope {record.id} was left {record.state}")
        if record.state is EnvelopeState.NEEDS_PERSON and frozen is None:
            problems.append("a person is needed, but changes are not frozen")
        left = {place.target: place.last for place in record.moved}
        expected = left["r0"] if record.state is EnvelopeState.KEPT else PRE
        if record.state is not EnvelopeState.NEEDS_PERSON and world.holds != expected:
            problems.append(f"{record.state}, but the stack holds {world.holds}")
    return problems
