"""Enveloping: opens an envelope that a person allowed, makes moves inside it, and keeps them or takes them back."""

import logging
from collections.abc import Callable

from harness.action import Action
from harness.envelope.envelope import Place
from harness.envelope.record import EnvelopeRecord, EnvelopeState
from harness.errors import TransitionError
from harness.execution.actuator import Actuator
from harness.execution.allowing import Allowing
from harness.execution.permitting import Refusal
from harness.execution.taking_back import all_hold, is_ours, read_back, settled, somebody_else, write_back
from harness.execution.watching import Watching
from harness.gate.history import History
from harness.journal.journal import Journal
from harness.journal.record import Step
from harness.mode import Mode
from harness.outcome import Verification
from harness.policy import Policy
from harness.verification.block import BlockLog
from harness.verification.supervision import Fate
from stack.clock import Clock
from stack.errors import StackError
from stack.snapshot import Snapshot

LOG = logging.getLogger(__name__)
_S = EnvelopeState


class Enveloping:
    """The envelope in force, if there is one.

    Attributes:
        in_force: to be taken back when the store fails.

    Args:
        steady_s: for how long the clock has not been set, see ClockWatch.look.
    """

    def __init__(
        self,
        actuator: Actuator,
        journal: Journal,
        clock: Clock,
        policy: Policy,
        blocks: BlockLog,
        history: Callable[[], History],
        steady_s: Callable[[], float],
        *,
        simulated: bool,
    ) -> None:
        self._actuator, self._journal, self._clock, self._policy = actuator, journal, clock, policy
        self._blocks = blocks
        self._allowing = Allowing(actuator, journal, policy, clock, history, simulated=simulated)
        self._watching: Watching | None = None
        self._steady_s, self._since_steady_s = steady_s, 0.0
        self.in_force: EnvelopeRecord | None = None

    def load(self) -> EnvelopeRecord | None:
        """The one in force, as the journal has it."""
        self.in_force = self._journal.envelopes.in_force()
        return self.in_force

    def open(self, envelope_id: int, mode: Mode, snapshot: Snapshot) -> EnvelopeRecord:
        """Store the former values of an approved envelope; from here on moves may be made inside it.

        Raises:
            TransitionError: it is not approved (any more), or the stack's state changed meanwhile.
        """
        envelopes, now_s = self._journal.envelopes, self._clock.now_s()
        record = envelopes.envelope(envelope_id)
        if record.state is not _S.APPROVED:
            raise TransitionError(f"envelope {envelope_id}: expected it to be approved, found {record.state}")
        try:
            permit = self._allowing.permit(record, mode, snapshot)
            self.in_force = envelopes.open(envelope_id, permit, now_s)
        except (Refusal, StackError, TransitionError) as refusal:
            return envelopes.end(record, _S.NOTHING_DONE, now_s, str(refusal))
        self._watching, self._since_steady_s = None, self._steady_s()
        return self.in_force

    def move(self, action: Action, mode: Mode, snapshot: Snapshot) -> str | None:
        """Make one move inside the envelope in force; why it was not made, in words, or None when it was.

        Raises:
            LeaseLostError: somebody else may write by now.
            StoreError: the journal cannot be written.
        """
        record, now_s = self.load(), self._clock.now_s()
        if record is None or mode is Mode.SHADOW:
            return "no envelope is in force" if record is None else "shadow mode never acts"
        try:
            verdict = self._allowing.verdict(action, mode, snapshot)
            places = self._allowing.places(record, action, snapshot)
            if record.first_move_s is None:
                self._blocks.close(snapshot)
            moving = self.in_force = self._journal.envelopes.commit_move(record, places, verdict, now_s)
        except (Refusal, StackError, TransitionError) as refusal:
            return str(refusal)
        if record.first_move_s is None:
            self._blocks.cut(now_s + self._policy.verification.settle_s)
        return self._send(moving, places)

    def watch(self, snapshot: Snapshot | None) -> EnvelopeRecord | None:
        """Go on with the envelope in force by what is seen now, None when blind; the one that ended in this call."""
        record, now_s = self.load(), self._clock.now_s()
        if record is None:
            return None
        if record.state is _S.CLOSING:
            return self._take_back(record)
        stop = self._spoilt(record)
        if stop is not None:
            return self.close(stop)
        self._watching = self._watching or Watching(self._policy, self._blocks, now_s)
        decision = self._watching.decide(record, snapshot, now_s)
        if decision.fate is Fate.KEEP:
            return self._keep(record, decision.reason, decision.verification)
        if decision.fate is Fate.ROLL_BACK:
            return self.close(decision.reason, decision.verification)
        return None

    def _spoilt(self, record: EnvelopeRecord) -> str | None:
        """Why it ends whatever is measured: its figures or its end would mean nothing."""
        steady_s, since_s = self._steady_s(), self._since_steady_s
        if steady_s < since_s:
            return "the clock was set while it was in force"
        self._since_steady_s = steady_s
        frozen = self._journal.frozen()
        if frozen is not None:
            return f"changes were frozen: {frozen}"
        unsure = any(place.unsure_of is not None for place in record.places)
        return "the reply to a move was lost" if unsure else None

    def close(self, reason: str, verification: Verification | None = None) -> EnvelopeRecord | None:
        """End the envelope in force and write its former values back; it, if that could be verified now."""
        record, now_s = self.load(), self._clock.now_s()
        if record is None:
            return None
        if record.state is _S.OPEN and not record.moved:
            return self._ended(record, _S.NOTHING_DONE, reason)
        if record.state is _S.OPEN:
            record = self.in_force = self._journal.envelopes.close(record, reason, verification, now_s)
        return self._take_back(record)

    def recover(self) -> None:
        """What was allowed before a restart was allowed in another situation: it is not opened any more."""
        for record in self._journal.envelopes.envelopes({_S.APPROVED}):
            self._ended(record, _S.NOTHING_DONE, "restarted before it was opened")

    def without_journal(self) -> None:
        """Write the former values back although the store fails; the row is ended at the next start."""
        record, self.in_force = self.in_force, None
        if record is not None and record.moved:
            left = write_back(self._actuator, f"envelope {record.id}", record.moved)
            LOG.error("envelope %s: taken back because the store failed; the stack holds %s", record.id, left)

    def _send(self, record: EnvelopeRecord, places: tuple[Place, ...]) -> str | None:
        """Send a committed move, and note what is read back; whatever came back, only that says what happened."""
        failed = next((why for place in places if (why := self._written(record, place)) is not None), None)
        if failed is not None:
            LOG.warning("envelope %s: %s", record.id, failed)
        held = read_back(self._actuator, places)
        if len(held) < len(places):
            return failed or "the stack does not answer, so what it holds is unknown"
        somebody = somebody_else(places, held)
        if somebody is not None:
            self.close(somebody)
            return somebody
        now_s = self._clock.now_s()
        found = tuple(settled(place, held[place.key], now_s) for place in places)
        self.in_force = self._journal.envelopes.settle(record, found, now_s)
        return failed

    def _written(self, record: EnvelopeRecord, place: Place) -> str | None:
        """One place's part of a move; why it was not written, in words."""
        if place.unsure_of is None or record.leave is None or self._clock.now_s() >= record.leave.ends_s:
            return f"not written to {place.target}: the envelope has ended"
        step = Step(place.target, place.unsure_of, place.last)
        return self._actuator.write_once(f"envelope {record.id}", place.setting, step)

    def _take_back(self, record: EnvelopeRecord) -> EnvelopeRecord | None:
        """Write the stored values back and read them back; None when it has to be tried again, for a while."""
        now_s = self._clock.now_s()
        held = write_back(self._actuator, f"envelope {record.id}", record.moved)
        self._blocks.cut(now_s + self._policy.verification.settle_s)
        if all_hold(record.moved, held, stored=True):
            return self._ended(record, _S.ROLLED_BACK, record.end_reason)
        somebody = somebody_else(record.moved, held)
        ours = [place for place in record.moved if place.key not in held or is_ours(place, held[place.key])]
        if somebody is not None and all_hold(ours, held, stored=True):
            return self._give_up(record, somebody)
        if now_s - (record.touched_s or now_s) <= self._policy.verification.rollback_retry_s:
            return None
        return self._give_up(record, somebody or f"the former values could not be verified ({record.end_reason})")

    def _keep(self, record: EnvelopeRecord, reason: str, verification: Verification | None) -> EnvelopeRecord | None:
        if not all_hold(record.moved, read_back(self._actuator, record.moved), stored=False):
            return self.close("the stack does not hold what was left, or does not answer", verification)
        return self._ended(record, _S.KEPT, reason, verification)

    def _give_up(self, record: EnvelopeRecord, reason: str) -> EnvelopeRecord:
        """End what only a person can resolve, and halt all changes."""
        self._journal.freeze(f"envelope {record.id}: {reason}", by="harness", now_s=self._clock.now_s())
        return self._ended(record, _S.NEEDS_PERSON, reason)

    def _ended(
        self, record: EnvelopeRecord, to: EnvelopeState, reason: str, verification: Verification | None = None
    ) -> EnvelopeRecord:
        self.in_force = self._watching = None  # whatever the store does from here on, it is not taken back without it
        return self._journal.envelopes.end(record, to, self._clock.now_s(), reason, verification)
