"""Enveloping: opens an envelope that a person allowed, makes moves inside it, and keeps them or takes them back."""

import logging
from collections.abc import Callable
from dataclasses import replace

from harness.action import Action
from harness.envelope.envelope import Place
from harness.envelope.record import EnvelopePermit, EnvelopeRecord, EnvelopeState
from harness.errors import TransitionError
from harness.execution.actuator import Actuator
from harness.execution.held import same
from harness.execution.permitting import Refusal
from harness.execution.watching import Watching
from harness.gate.case import targets_of
from harness.gate.check import check
from harness.gate.envelope_check import check_envelope
from harness.gate.history import History, direction
from harness.journal.journal import Journal
from harness.mode import Mode
from harness.outcome import Verification
from harness.policy import Policy
from harness.verdict import Ruling
from harness.verification.block import BlockLog
from harness.verification.supervision import Fate
from stack.catalogue import in_words
from stack.clock import Clock
from stack.errors import StackError
from stack.setting import Value
from stack.snapshot import Snapshot

LOG = logging.getLogger(__name__)
_S = EnvelopeState


class Enveloping:
    """The envelope in force, if there is one.

    Attributes:
        in_force: to be taken back when the store fails.
    """

    def __init__(
        self,
        actuator: Actuator,
        journal: Journal,
        clock: Clock,
        policy: Policy,
        blocks: BlockLog,
        history: Callable[[], History],
        *,
        simulated: bool,
    ) -> None:
        self._actuator, self._journal, self._clock, self._policy = actuator, journal, clock, policy
        self._blocks, self._history, self._simulated = blocks, history, simulated
        self._watching: Watching | None = None
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
            permit = self._permit(record, mode, snapshot)
            self.in_force = envelopes.open(envelope_id, permit, now_s)
        except (Refusal, StackError, TransitionError) as refusal:
            return envelopes.end(record, _S.NOTHING_DONE, now_s, str(refusal))
        self._watching = None
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
            verdict = check(
                action, snapshot, self._history(), self._policy, mode=mode, now_s=now_s, simulated=self._simulated
            )
            if verdict.ruling is not Ruling.ALLOW:
                raise Refusal("; ".join(f"{hit.rule}: {hit.detail}" for hit in verdict.hits))
            places = self._wanted(record, action, snapshot, now_s)
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
        if any(place.unsure_of is not None for place in record.places):
            return self.close("the reply to a move was lost")
        self._watching = self._watching or Watching(self._policy, self._blocks, now_s)
        decision = self._watching.decide(record, snapshot, now_s)
        if decision.fate is Fate.KEEP:
            return self._keep(record, decision.reason, decision.verification)
        if decision.fate is Fate.ROLL_BACK:
            return self.close(decision.reason, decision.verification)
        return None

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
        if record is None or not record.moved:
            return
        held = self._held(record.moved)
        if held is None or _somebody(record.moved, held):
            LOG.error("envelope %s: not taken back, the stack holds %s", record.id, held)
            return
        self._write_back(record)
        LOG.error("envelope %s: taken back because the store failed", record.id)

    def _permit(self, record: EnvelopeRecord, mode: Mode, snapshot: Snapshot) -> EnvelopePermit:
        version, now_s = self._journal.state_version(), self._clock.now_s()
        if mode is Mode.SHADOW:
            raise Refusal("shadow mode never acts")
        verdict = check_envelope(record.envelope, snapshot, self._history(), self._policy, mode=mode, now_s=now_s)
        if verdict.ruling is Ruling.DENY:
            raise Refusal("; ".join(f"{hit.rule}: {hit.detail}" for hit in verdict.hits))
        keys = record.envelope.places(tuple(sorted(snapshot.replicas)))
        read = {key: self._actuator.read(*key) for key in keys}
        stored = {key: float(value) for key, value in read.items() if not isinstance(value, str)}
        told = snapshot.settings
        moved = [key for key in keys if key not in stored or not same(stored[key], told[key[0]][key[1]])]
        if moved:
            setting, target = moved[0]
            expected = f"expected {setting} on {target} to be {in_words(told[setting][target])}"
            raise Refusal(f"{expected}, read back {in_words(read[moved[0]])}")
        places = (Place(setting=key[0], target=key[1], stored=stored[key], last=stored[key]) for key in keys)
        return EnvelopePermit(tuple(places), verdict, version)

    def _wanted(self, record: EnvelopeRecord, action: Action, snapshot: Snapshot, now_s: float) -> tuple[Place, ...]:
        """The places of a move as they are to be, after reading that they hold what the move was planned for."""
        after, places = action.after, []
        for target in targets_of(action, snapshot):
            place = next((one for one in record.places if one.key == (action.setting, target)), None)
            found = self._actuator.read(action.setting, target)
            if place is None or isinstance(found, str) or isinstance(after, str) or not same(found, action.before):
                expected = f"expected {action.setting} on {target} to be {in_words(action.before)}"
                raise Refusal(f"{expected}, read back {in_words(found)}")
            turn = direction(found, after)
            moved = replace(place, last=after, unsure_of=found, moved_s=now_s, turn=turn, moves=place.moves + 1)
            places.append(moved)
        return tuple(places)

    def _send(self, record: EnvelopeRecord, places: tuple[Place, ...]) -> str | None:
        """Send a committed move, and note what is read back; whatever came back, only that says what happened."""
        failed = None
        try:
            for place in places:
                self._actuator.send(f"envelope {record.id}", place.setting, place.target, place.last)
        except StackError as error:
            failed = f"the move on {place.target} failed: {error}"
            LOG.warning("envelope %s: %s", record.id, failed)
        held = self._held(places)
        if held is None:
            return failed or "the stack does not answer, so what it holds is unknown"
        somebody = _somebody(places, held)
        if somebody:
            self._give_up(record, somebody)
            return somebody
        settled = tuple(_settled(place, held[place.key]) for place in places)
        self.in_force = self._journal.envelopes.settle(record, settled, self._clock.now_s())
        return failed

    def _take_back(self, record: EnvelopeRecord) -> EnvelopeRecord | None:
        """Write the stored values back and read them back; None when it has to be tried again, for a while."""
        now_s, held = self._clock.now_s(), self._held(record.moved)
        if held is not None:
            somebody = _somebody(record.moved, held)
            if somebody:
                return self._give_up(record, somebody)
            self._write_back(record)
            held = self._held(record.moved)
        self._blocks.cut(now_s + self._policy.verification.settle_s)
        if held is not None and all(same(held[place.key], place.stored) for place in record.moved):
            return self._ended(record, _S.ROLLED_BACK, record.end_reason)
        if now_s - (record.touched_s or now_s) <= self._policy.verification.rollback_retry_s:
            return None
        return self._give_up(record, f"the former values could not be verified ({record.end_reason})")

    def _write_back(self, record: EnvelopeRecord) -> None:
        for place in reversed(record.moved):
            self._actuator.hold_if_possible()
            try:
                self._actuator.send(f"envelope {record.id}", place.setting, place.target, place.stored)
            except StackError as error:
                LOG.warning("envelope %s: undo on %s failed: %s", record.id, place.target, error)

    def _keep(self, record: EnvelopeRecord, reason: str, verification: Verification | None) -> EnvelopeRecord | None:
        held = self._held(record.moved)
        if held is None or not all(same(held[place.key], place.last) for place in record.moved):
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

    def _held(self, places: tuple[Place, ...]) -> dict[tuple[str, str], Value] | None:
        try:
            return {place.key: self._actuator.read(place.setting, place.target) for place in places}
        except StackError as error:
            LOG.warning("cannot read back: %s", error)
            return None


def _somebody(places: tuple[Place, ...], held: dict[tuple[str, str], Value]) -> str | None:
    """Who else wrote, in words: a value that none of our moves left; None when there is none."""
    for place in places:
        ours = [place.stored, place.last, *([] if place.unsure_of is None else [place.unsure_of])]
        if not any(same(held[place.key], value) for value in ours):
            expected = " or ".join(dict.fromkeys(in_words(value) for value in ours))
            found = f"expected {expected} on {place.target}, read back {in_words(held[place.key])}"
            return f"{found} of {place.setting}: somebody else wrote, left alone"
    return None


def _settled(place: Place, held: Value) -> Place:
    """The place by what it holds: the move is in force, or it was not made."""
    last = place.last if same(held, place.last) or place.unsure_of is None else place.unsure_of
    return replace(place, last=last, unsure_of=None)
