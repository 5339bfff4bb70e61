"""Watching an envelope: when it must end, and whether what was done in it is an improvement as a whole."""

from dataclasses import dataclass, field

from harness.action import Action
from harness.envelope.envelope import Guard, Place
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
    _strikes: dict[Guard, int] = field(default_factory=dict)
    _guards_seen_s: dict[Guard, float] = field(default_factory=dict)
    _supervision: Supervision | None = None

    def decide(self, record: EnvelopeRecord, snapshot: Snapshot | None, now_s: float) -> Decision:
        """Wait, roll back at once, or at its end keep what was measured to be better."""
        stop = self._blind(snapshot, now_s) or self._guarded(record, snapshot, now_s)
        if stop:
            return Decision(Fate.ROLL_BACK, stop, Verification(Measured.UNMEASURED, stop))
        ended = record.leave is None or now_s >= record.leave.ends_s
        if record.first_move_s is None:
            return Decision(Fate.ROLL_BACK, "nothing was moved until its end") if ended else WAIT
        decision = self._judged(record, record.first_move_s, snapshot, now_s, final=ended)
        if decision.fate is Fate.KEEP and (snapshot is None or not ended):
            return WAIT  # blind it is seen again, or taken back
        return decision if ended or decision.fate is Fate.ROLL_BACK else WAIT

    @property
    def _age_max_s(self) -> float:
        return self.policy.evidence.age_max_s

    def _blind(self, snapshot: Snapshot | None, now_s: float) -> str | None:
        """Blind values are the former ones: nobody corrects what nobody sees."""
        if snapshot is not None:
            self.seen_s = now_s
            return None
        blind_s = now_s - self.seen_s
        return f"blind for {blind_s:.0f} s, at most {self._age_max_s:g} s" if blind_s > self._age_max_s else None

    def _guarded(self, record: EnvelopeRecord, snapshot: Snapshot | None, now_s: float) -> str | None:
        if snapshot is None:
            return None
        found = [self._broken(guard, snapshot.value(guard.signal), now_s) for guard in record.envelope.guards]
        return next((problem for problem in found if problem is not None), None)

    def _broken(self, guard: Guard, value: float | None, now_s: float) -> str | None:
        """Why a guard ends the envelope: what is not measured breaks none, but for so long only."""
        seen_s = self._guards_seen_s.setdefault(guard, now_s)
        if value is None:
            unseen_s = now_s - seen_s
            return f"{guard.signal}, a guard, unseen for {unseen_s:.0f} s" if unseen_s > self._age_max_s else None
        self._guards_seen_s[guard] = now_s
        strikes = self._strikes[guard] = 0 if value <= guard.at_most else self._strikes.get(guard, 0) + 1
        if strikes < self.policy.envelope.guard_strikes:
            return None
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
