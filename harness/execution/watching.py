"""Watching an envelope: when it must end, and whether what was done in it is an improvement as a whole."""

from dataclasses import dataclass

from harness.action import Action
from harness.envelope.envelope import Place
from harness.envelope.record import EnvelopeRecord
from harness.journal.record import Permit, Record, State, Step
from harness.outcome import Measured, Verification
from harness.policy import Policy
from harness.verification.block import BlockLog
from harness.verification.supervision import WAIT, Decision, Fate, Supervision
from stack.catalogue import setting_named
from stack.snapshot import FLEET, Snapshot

LOOKS = 5
"""Looks over the life of an envelope, as many as at a single change, since the total error is split over them."""


@dataclass
class Watching:
    """Judges one envelope cycle by cycle; what it remembers may be lost, since a restart closes the envelope.

    Attributes:
        seen_s: stack time at which it was last looked at with open eyes.
    """

    policy: Policy
    blocks: BlockLog
    seen_s: float
    _strikes: int = 0
    _supervision: Supervision | None = None

    def decide(self, record: EnvelopeRecord, snapshot: Snapshot | None, now_s: float) -> Decision:
        """Wait, roll back at once, or at its end keep what was measured to be better."""
        stop = self._blind(snapshot, now_s) or self._guarded(record, snapshot)
        if stop:
            return Decision(Fate.ROLL_BACK, stop, Verification(Measured.UNMEASURED, stop))
        ended = record.leave is None or now_s >= record.leave.ends_s
        if record.first_move_s is None:
            return Decision(Fate.ROLL_BACK, "nothing was moved until its end") if ended else WAIT
        decision = self._judged(record, record.first_move_s, snapshot, now_s, final=ended)
        return decision if ended or decision.fate is Fate.ROLL_BACK else WAIT

    def _blind(self, snapshot: Snapshot | None, now_s: float) -> str | None:
        """Blind values are the former ones: nobody corrects what nobody sees."""
        if snapshot is not None:
            self.seen_s = now_s
            return None
        blind_s, most_s = now_s - self.seen_s, self.policy.evidence.age_max_s
        return f"blind for {blind_s:.0f} s, at most {most_s:g} s" if blind_s > most_s else None

    def _guarded(self, record: EnvelopeRecord, snapshot: Snapshot | None) -> str | None:
        if snapshot is None:
            return None
        values = ((guard, snapshot.value(guard.signal)) for guard in record.envelope.guards)
        broken = [(guard, value) for guard, value in values if value is not None and not value <= guard.at_most]
        self._strikes = self._strikes + 1 if broken else 0
        if self._strikes < self.policy.envelope.guard_strikes:
            return None
        guard, value = broken[0]
        return f"{guard.signal} is {value:g}, its guard {guard.at_most:g}"

    def _judged(
        self, record: EnvelopeRecord, first_s: float, snapshot: Snapshot | None, now_s: float, *, final: bool
    ) -> Decision:
        """The verdict on all moves together: what came after the first against what was before it."""
        if self._supervision is None:
            self._supervision = Supervision(_planned(record, first_s, self.policy), self.blocks)
        return self._supervision.decide(_as_changes(record, first_s), snapshot, now_s, (), final=final)


def _planned(record: EnvelopeRecord, first_s: float, policy: Policy) -> Policy:
    """The policy with looks spread over what is left of the envelope's life, the last one block before its end."""
    plan = policy.verification
    end_s = first_s if record.leave is None else record.leave.ends_s
    whole_s = max(plan.block_s, end_s - first_s - plan.settle_s - plan.block_s)
    looks_s = tuple(whole_s * (number + 1) / LOOKS for number in range(LOOKS))
    return policy.model_copy(update={"verification": plan.model_copy(update={"looks_s": looks_s})})


def _as_changes(record: EnvelopeRecord, first_s: float) -> list[Record]:
    """What the envelope did, as one change a setting, for the judges of changes; oldest first."""
    settings = dict.fromkeys(place.setting for place in record.moved)
    return [_as_change(record, first_s, [p for p in record.moved if p.setting == setting]) for setting in settings]


def _as_change(record: EnvelopeRecord, first_s: float, places: list[Place]) -> Record:
    first = max(places, key=lambda place: abs(place.last - place.stored))
    action = Action(
        setting=first.setting,
        target=first.target if len(places) == 1 else FLEET,
        before=first.stored,
        after=first.last,
        cause="envelope",
        layer=setting_named(first.setting).layer,
        reason=record.envelope.reason,
    )
    steps = tuple(Step(place.target, place.stored, place.last) for place in places)
    return Record(
        id=-record.id,  # no row of its own
        stack=record.stack,
        action=action,
        state=State.PROBATION,
        verdict=record.verdict,
        proposed_s=record.proposed_s,
        expires_at=record.expires_at,
        permit=Permit(steps, record.verdict, record.state_version),
        armed_s=first_s,
        applied_s=first_s,
    )
