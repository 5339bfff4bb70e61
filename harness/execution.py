"""Execution: the only place from which a stack is written to.

Order: permit row committed, write, read back, settle, judge, keep or undo. The undo is a stored absolute value, so
that repeating it changes nothing; rolling back asks no model, no person and no metric.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace

from harness.errors import TransitionError
from harness.gate.case import targets_of
from harness.gate.check import check
from harness.gate.history import History
from harness.journal.journal import AUTO, Journal
from harness.journal.record import Permit, Record, State, Step, held_value
from harness.journal.row import verification_row
from harness.mode import Mode
from harness.outcome import Verification
from harness.policy import Policy
from harness.verdict import Ruling, Verdict
from harness.verification.block import BlockLog
from harness.verification.supervision import Fate, Supervision, on_trial
from stack.catalogue import in_words
from stack.clock import Clock
from stack.control import StackControl
from stack.errors import StackError, UnreachableError
from stack.reader import StackReader
from stack.setting import Value
from stack.snapshot import Snapshot

LOG = logging.getLogger(__name__)
BLOCKS_KEPT = 4
"""Stretches of before and after windows kept in memory: three changes may be stacked."""


class _Refusal(Exception):  # noqa: N818 - a reason to do nothing, not an error
    """The action must not be done; the text says why."""


class Executor:
    """Applies approved actions, watches them until they are kept or undone, and cleans up after a crash."""

    def __init__(
        self,
        control: StackControl,
        journal: Journal,
        policy: Policy,
        clock: Clock,
        reader: StackReader,
        *,
        window_s: float = 60.0,
        simulated: bool = False,
        earned: Callable[[], frozenset[str]] = frozenset,
    ) -> None:
        """Begin with nothing watched.

        Args:
            earned: the settings whose shadow record lets them act by themselves now.
        """
        plan = policy.verification
        self._control, self._journal, self._policy = control, journal, policy
        self._clock, self._reader = clock, reader
        self._window_s, self._simulated, self._earned = window_s, simulated, earned
        keep_s = plan.before_s + BLOCKS_KEPT * (plan.settle_s + plan.longest_s + plan.blind_grace_s)
        self.blocks = BlockLog(keep_s, policy.evidence.age_max_s)
        self._supervision = Supervision(policy, self.blocks)
        self._condemned: dict[int, tuple[str, Verification | None]] = {}

    def history(self) -> History:
        """The gate's view of the past, with how long the stack has been watched."""
        now_s = self._clock.now_s()
        history = self._journal.history(now_s, watched_s=self.blocks.watched_s(now_s))
        return replace(history, earned=self._earned())

    def apply(self, action_id: int, *, mode: Mode, snapshot: Snapshot | None = None) -> Record:
        """Carry out an approved action, once.

        Args:
            action_id: its row in the journal, in state APPROVED.
            mode: how much the loop may do by itself now.
            snapshot: facts read just now; read here when not given.

        Returns:
            Its record: settling, or already ended (nothing done, or a person is needed).

        Raises:
            TransitionError: it is not approved.
        """
        record = self._journal.record(action_id)
        if record.state is not State.APPROVED:
            raise TransitionError(f"action {action_id}: expected it to be approved, found {record.state}")
        now_s = self._clock.now_s()
        try:
            permit = self._permit(record, mode, snapshot, now_s)
            self._journal.arm(action_id, permit, now_s)
        except (_Refusal, StackError, TransitionError) as refusal:
            return self._journal.end(record, State.NOTHING_DONE, now_s, str(refusal), holds=None)
        self._write(permit, record)
        return self._resolve(self._journal.record(action_id), resume=True)

    def supervise(self, snapshot: Snapshot | None) -> tuple[Record, ...]:
        """Advance every open action by what is seen now; call it every cycle, with None when nothing answered.

        Returns:
            The actions that ended in this call.
        """
        now_s = self._clock.now_s()
        seeing = snapshot is not None and self.blocks.observe(snapshot, now_s)
        opened = self._journal.open_records()
        for record in reversed(opened):
            self._finish(record)
        stack = [r for r in self._journal.open_records() if r.state in (State.SETTLING, State.PROBATION)]
        if stack and seeing and stack[-1].state is State.SETTLING:
            stack[-1] = self._first_look(stack[-1], now_s)
        if stack:
            self._judge(on_trial(stack), snapshot if seeing else None, now_s)
        return self._ended(opened)

    def undo_open(self, reason: str) -> tuple[Record, ...]:
        """Undo everything that is not kept yet, youngest first."""
        opened = self._journal.open_records()
        for record in reversed(opened):
            if record.state in (State.ARMED, State.UNKNOWN):
                self._resolve(record, resume=False)
            elif not self._roll_back(record, reason):
                self._condemned |= {r.id: (reason, None) for r in opened if r.id != record.id}
                break
        return self._ended(opened)

    def stop(self, *, by: str) -> tuple[Record, ...]:
        """Halt all new changes and undo what is in flight."""
        self._journal.freeze(f"stopped by {by}", by=by, now_s=self._clock.now_s())
        return self.undo_open(f"stopped by {by}")

    def recover(self) -> tuple[Record, ...]:
        """Resolve what a crash left behind, by reading back; call it at start, before anything is proposed.

        A verification in progress is not resumed: its window is broken, so the change is undone.
        """
        now_s = self._clock.now_s()
        unsent = self._journal.records({State.APPROVED})
        for record in unsent:
            reason = "restarted before the permit was committed"
            self._journal.end(record, State.NOTHING_DONE, now_s, reason, holds=record.action.before)
        return self._ended(unsent) + self.undo_open("restarted while the change was in flight")

    def _permit(self, record: Record, mode: Mode, snapshot: Snapshot | None, now_s: float) -> Permit:
        """Values read back just now, the writes, and the second verdict.

        Raises:
            _Refusal, StackError: the action must not be done.
        """
        action = record.action
        if mode is Mode.SHADOW:
            raise _Refusal("shadow mode never acts")
        if record.decided_by != AUTO and self._journal.wall_now() > record.expires_at:
            raise _Refusal("the approval has expired")
        fresh = snapshot if snapshot is not None else self._reader.snapshot(self._window_s)
        verdict = check(action, fresh, self.history(), self._policy, mode=mode, now_s=now_s, simulated=self._simulated)
        _require(verdict, asked=record.decided_by != AUTO)
        self.blocks.close(fresh)
        steps = tuple(
            Step(target, self._control.read(action.setting, target), action.after)
            for target in targets_of(action, fresh)
        )
        moved = [step for step in steps if not same(step.pre, action.before)]
        if moved:
            expected = f"expected {action.setting} on {moved[0].target} to be {in_words(action.before)}"
            raise _Refusal(f"{expected}, read back {in_words(moved[0].pre)}")
        return Permit(steps, verdict)

    def _write(self, permit: Permit, record: Record) -> None:
        """Send the writes; whatever comes back, only reading back decides what happened."""
        for step in permit.steps:
            try:
                self._control.write(record.action.setting, step.target, step.wanted)
            except StackError as error:
                LOG.warning("action %s: write to %s failed: %s", record.id, step.target, error)
                self._journal.note(
                    record.id, "write_failed", self._clock.now_s(), {"target": step.target, "error": str(error)}
                )
                return

    def _resolve(self, record: Record, *, resume: bool) -> Record:
        """Find out by reading back what an armed action did, and go on from there."""
        now_s = self._clock.now_s()
        held = self._held(record)
        if held is None:
            if record.state is State.ARMED:
                self._journal.move(record.id, State.ARMED, State.UNKNOWN, now_s)
            elif now_s - (record.armed_s or now_s) > self._policy.verification.rollback_retry_s:
                return self._give_up(record, "the stack does not answer, so what it holds is unknown", None)
            return self._journal.record(record.id)
        steps = _steps(record)
        if _foreign(steps, held):
            return self._give_up(record, _foreign_words(steps, held), held)
        if all(same(held[step.target], step.pre) for step in steps):
            reason = "the stack still holds its former value"
            return self._journal.end(record, State.NOTHING_DONE, now_s, reason, holds=held_value(held))
        if resume and all(same(held[step.target], step.wanted) for step in steps):
            times: dict[str, object] = {"applied_s": now_s, "touched_s": now_s}
            self._journal.move(record.id, record.state, State.APPLIED, now_s, {"read_back": held}, **times)
            self._journal.move(record.id, State.APPLIED, State.SETTLING, now_s)
            self.blocks.cut(now_s + self._policy.verification.settle_s)
            return self._journal.record(record.id)
        self._roll_back(record, "only part of the change was made" if resume else "restarted before it was judged")
        return self._journal.record(record.id)

    def _finish(self, record: Record) -> None:
        """Go on with what an earlier cycle or a lost reply left undone."""
        if record.state in (State.ARMED, State.UNKNOWN):
            self._resolve(record, resume=record.state is State.UNKNOWN)
        elif record.state in (State.APPLIED, State.ROLLING_BACK):
            self._roll_back(record, record.end_reason or "left unfinished")
        elif record.id in self._condemned:
            self._roll_back(record, *self._condemned[record.id])

    def _first_look(self, record: Record, now_s: float) -> Record:
        if not self._supervision.first_look_due(record, now_s):
            return record
        self._journal.move(record.id, State.SETTLING, State.PROBATION, now_s)
        return self._journal.record(record.id)

    def _judge(self, stack: list[Record], snapshot: Snapshot | None, now_s: float) -> None:
        decision = self._supervision.decide(stack, snapshot, now_s, self._breaks_s(stack))
        if decision.fate is Fate.WAIT:
            return
        if decision.fate is Fate.KEEP and decision.verification is not None:
            self._keep(stack, decision.reason, decision.verification, now_s)
            return
        for record in reversed(stack):
            if decision.fate is Fate.HOLD:
                self._give_up(record, decision.reason, self._held(record), decision.verification)
            elif not self._roll_back(record, decision.reason, decision.verification):
                older = stack[: stack.index(record)]
                self._condemned |= {r.id: (decision.reason, decision.verification) for r in older}
                return

    def _keep(self, stack: list[Record], reason: str, verification: Verification, now_s: float) -> None:
        """Keep changes that the stack, read once more, still holds; a younger one may have replaced an older value."""
        last = {(r.action.setting, step.target): step.wanted for r in stack for step in _steps(r)}
        for record in reversed(stack):
            held = self._held(record)
            wanted = {step.target: last[record.action.setting, step.target] for step in _steps(record)}
            if held is None or not all(same(held[target], value) for target, value in wanted.items()):
                lost = "the stack does not hold the change any more, or does not answer"
                self._roll_back(record, lost, verification)
                return
            holds = held_value(held)
            self._journal.end(record, State.KEPT, now_s, reason, holds=holds, verification=verification)

    def _roll_back(self, record: Record, reason: str, verification: Verification | None = None) -> bool:
        """Write the stored undo and read it back. False when it has to be tried again."""
        now_s = self._clock.now_s()
        if record.state is not State.ROLLING_BACK:
            row = None if verification is None else verification_row(verification)
            columns: dict[str, object] = {"end_reason": reason, "verification": row, "touched_s": now_s}
            self._journal.move(record.id, record.state, State.ROLLING_BACK, now_s, {"reason": reason}, **columns)
            record = self._journal.record(record.id)
        held = self._held(record)
        steps = _steps(record)
        if held is not None and _foreign(steps, held):
            self._give_up(record, _foreign_words(steps, held), held)
            return True
        if held is not None:
            held = self._write_undo(record, held)
        self.blocks.cut(now_s + self._policy.verification.settle_s)
        if held is not None and all(same(held[step.target], step.pre) for step in steps):
            holds = held_value(held)
            self._journal.end(record, State.ROLLED_BACK, now_s, record.end_reason, holds=holds, touched_s=now_s)
            return True
        if held is None and now_s - (record.touched_s or now_s) <= self._policy.verification.rollback_retry_s:
            return False
        self._give_up(record, f"the undo could not be verified ({record.end_reason})", held)
        return True

    def _write_undo(self, record: Record, held: Mapping[str, Value]) -> Mapping[str, Value] | None:
        for step in reversed(_steps(record)):
            if same(held[step.target], step.pre):
                continue
            try:
                self._control.write(record.action.setting, step.target, step.pre)
            except StackError as error:
                LOG.warning("action %s: undo on %s failed: %s", record.id, step.target, error)
        return self._held(record)

    def _held(self, record: Record) -> Mapping[str, Value] | None:
        """What the stack holds on each target of an action; None when it does not answer."""
        try:
            return {step.target: self._control.read(record.action.setting, step.target) for step in _steps(record)}
        except UnreachableError as error:
            LOG.warning("action %s: cannot read back: %s", record.id, error)
            return None
        except StackError as error:
            LOG.warning("action %s: cannot read back: %s", record.id, error)
            return {step.target: "unreadable" for step in _steps(record)}

    def _give_up(
        self,
        record: Record,
        reason: str,
        held: Mapping[str, Value] | None,
        verification: Verification | None = None,
    ) -> Record:
        """End an action that only a person can resolve, and halt all changes."""
        now_s = self._clock.now_s()
        self._journal.freeze(f"action {record.id}: {reason}", by="harness", now_s=now_s)
        holds = None if held is None else held_value(held)
        return self._journal.end(record, State.NEEDS_PERSON, now_s, reason, holds=holds, verification=verification)

    def _breaks_s(self, stack: list[Record]) -> tuple[float, ...]:
        """When the stack was written to before this set, undos included."""
        ids = {record.id for record in stack}
        times = [
            time_s
            for record in (*self._journal.ended(), *self._journal.open_records())
            if record.id not in ids and record.applied_s is not None
            for time_s in (record.applied_s, record.touched_s)
            if time_s is not None
        ]
        return tuple(sorted(set(times)))

    def _ended(self, records: tuple[Record, ...]) -> tuple[Record, ...]:
        now = [self._journal.record(record.id) for record in records]
        return tuple(record for record in now if record.outcome is not None)


def same(one: Value, other: Value) -> bool:
    """Whether two values are the same setting; a stack may give 40 back as 40.0."""
    if isinstance(one, str) or isinstance(other, str):
        return one == other
    return abs(one - other) <= 1e-6 * max(1.0, abs(other))


def _require(verdict: Verdict, *, asked: bool) -> None:
    if verdict.ruling is Ruling.DENY or (verdict.ruling is Ruling.ASK and not asked):
        raise _Refusal("; ".join(f"{hit.rule}: {hit.detail}" for hit in verdict.hits))


def _steps(record: Record) -> tuple[Step, ...]:
    return record.permit.steps if record.permit else ()


def _foreign(steps: tuple[Step, ...], held: Mapping[str, Value]) -> bool:
    """Whether somebody else wrote: a value that is neither the former nor the wanted one."""
    return any(not same(held[s.target], s.pre) and not same(held[s.target], s.wanted) for s in steps)


def _foreign_words(steps: tuple[Step, ...], held: Mapping[str, Value]) -> str:
    step = steps[0]
    found = ", ".join(f"{target} {in_words(value)}" for target, value in held.items())
    return (
        f"expected {in_words(step.pre)} or {in_words(step.wanted)}, read back {found}: somebody else wrote, left alone"
    )
