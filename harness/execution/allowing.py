"""Allowing: the last look before an envelope is opened or a move in it is committed, on what is read just now."""

from collections.abc import Callable
from dataclasses import replace

from harness.action import Action
from harness.envelope.envelope import Place
from harness.envelope.record import EnvelopePermit, EnvelopeRecord
from harness.execution.actuator import Actuator
from harness.execution.held import same
from harness.execution.permitting import Refusal, require
from harness.gate.case import targets_of
from harness.gate.check import check
from harness.gate.envelope_check import check_envelope
from harness.gate.history import History, direction
from harness.journal.journal import Journal
from harness.mode import Mode
from harness.policy import Policy
from harness.verdict import Verdict
from stack.catalogue import in_words
from stack.clock import Clock
from stack.snapshot import Snapshot


class Allowing:
    """Asks the gate a second time, and reads what is about to be changed."""

    def __init__(
        self,
        actuator: Actuator,
        journal: Journal,
        policy: Policy,
        clock: Clock,
        history: Callable[[], History],
        *,
        simulated: bool,
    ) -> None:
        self._actuator, self._journal, self._policy = actuator, journal, policy
        self._clock, self._history, self._simulated = clock, history, simulated

    def permit(self, record: EnvelopeRecord, mode: Mode, snapshot: Snapshot) -> EnvelopePermit:
        """The former values, and the second verdict, for the state that the stack has.

        Raises:
            Refusal, StackError: it must not be opened.
        """
        version, now_s = self._journal.state_version(), self._clock.now_s()
        if mode is Mode.SHADOW:
            raise Refusal("shadow mode never acts")
        verdict = check_envelope(record.envelope, snapshot, self._history(), self._policy, mode=mode, now_s=now_s)
        require(verdict, asked=True)
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

    def verdict(self, action: Action, mode: Mode, snapshot: Snapshot) -> Verdict:
        """The second verdict on a move.

        Raises:
            Refusal: it must not be made; nothing is asked inside an envelope.
        """
        now_s, history = self._clock.now_s(), self._history()
        simulated = self._simulated
        found = check(
            action, snapshot, history, self._policy, mode=mode, now_s=now_s, simulated=simulated, as_move=True
        )
        require(found, asked=False)
        return found

    def places(self, record: EnvelopeRecord, action: Action, snapshot: Snapshot) -> tuple[Place, ...]:
        """The places of a move as they are to be.

        Raises:
            Refusal, StackError: they do not hold what the move was planned for.
        """
        after, now_s, places = action.after, self._clock.now_s(), []
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
