"""The executor: applies approved actions, watches them until they are kept or undone, cleans up after a crash."""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from harness.action import Action
from harness.envelope.record import EnvelopeRecord
from harness.errors import StoreError, TransitionError
from harness.execution.actuator import Actuator
from harness.execution.clock_watch import ClockWatch
from harness.execution.enveloping import Enveloping
from harness.execution.judging import Judging
from harness.execution.permitting import Permitting, Refusal
from harness.execution.resolving import Resolving
from harness.execution.undoing import Undoing
from harness.gate.history import History
from harness.journal.journal import Journal
from harness.journal.record import Record, State
from harness.mode import Mode
from harness.policy import Policy
from harness.verification.block import BlockLog
from stack.clock import Clock
from stack.control import StackControl
from stack.errors import StackError
from stack.reader import StackReader
from stack.snapshot import Snapshot

LOG = logging.getLogger(__name__)
TURN_S = 1.0
"""How long a stop from outside waits for a write under way before it looks again."""
BLOCKS_KEPT = 4
"""Stretches of before and after windows kept in memory: three changes may be stacked."""


class Executor:
    """The harness's hands. Its methods may be called from several threads; they take turns."""

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
        self._journal, self._clock, self._reader = journal, clock, reader
        self._window_s, self._earned = window_s, earned
        trial_s = BLOCKS_KEPT * (plan.settle_s + plan.longest_s + plan.blind_grace_s)
        keep_s = plan.before_s + max(trial_s, policy.envelope.lasts_max_s)
        self._clock_watch = ClockWatch(clock, policy.evidence.clock_skew_max_s)
        self.blocks = BlockLog(keep_s, policy.evidence.age_max_s)
        actuator = self._actuator = Actuator(control, journal)
        self._undoing = Undoing(actuator, journal, clock, plan, self.blocks)
        self._resolving = Resolving(actuator, journal, self._undoing, clock, plan, self.blocks)
        self._permitting = Permitting(actuator, policy, clock, self.blocks, self.history, simulated=simulated)
        self._judging = Judging(actuator, journal, self._undoing, clock, policy, self.blocks)
        steady_s = self._clock_watch.look
        self._enveloping = Enveloping(
            actuator, journal, clock, policy, self.blocks, self.history, steady_s, simulated=simulated
        )
        self._turn = threading.RLock()
        self._halted: tuple[Record, ...] = ()

    def history(self) -> History:
        """The gate's view of the past, with how long the stack has been watched, and its clock not been set."""
        now_s, steady_s = self._clock.now_s(), self._clock_watch.look()
        history = self._journal.history(now_s, watched_s=self.blocks.watched_s(now_s))
        seen_until_s = self.blocks.seen_until_s
        return replace(history, clock_steady_s=steady_s, seen_until_s=seen_until_s, earned=self._earned())

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
            LeaseLostError: somebody else may change the stack.
            StoreError: the journal cannot be written; what was in flight is undone as far as that is possible.
        """
        with self._acting():
            record, version = self._journal.record_and_version(action_id)
            if record.state is not State.APPROVED:
                self._journal.hold()  # who took the lease over has ended what was approved
                raise TransitionError(f"action {action_id}: expected it to be approved, found {record.state}")
            try:
                fresh = snapshot if snapshot is not None else self._reader.snapshot(self._window_s)
                permit = self._permitting.permit(record, version, mode, fresh)
                armed = self._journal.arm(action_id, permit, self._clock.now_s())
            except (Refusal, StackError, TransitionError) as refusal:
                now_s = self._clock.now_s()
                return self._journal.end(record, State.NOTHING_DONE, now_s, str(refusal), holds=None)
            return self._write(armed)

    def open_envelope(self, envelope_id: int, *, mode: Mode, snapshot: Snapshot | None = None) -> EnvelopeRecord:
        """Open an approved envelope: its former values are stored, and moves may be made inside it.

        Raises:
            TransitionError: it is not approved.
            LeaseLostError: somebody else may change the stack.
            StoreError: the journal cannot be written.
        """
        with self._acting():
            fresh = snapshot if snapshot is not None else self._reader.snapshot(self._window_s)
            return self._enveloping.open(envelope_id, mode, fresh)

    def move(self, action: Action, *, mode: Mode, snapshot: Snapshot | None = None) -> str | None:
        """Make one move inside the envelope in force, if the gate allows it on what is seen now.

        Returns:
            Why it was not made, in words; None when it was, and the stack holds it.

        Raises:
            LeaseLostError: somebody else may change the stack.
            StoreError: the journal cannot be written; the envelope's former values are written back if possible.
        """
        with self._acting():
            fresh = snapshot if snapshot is not None else self._reader.snapshot(self._window_s)
            return self._enveloping.move(action, mode, fresh)

    def watch_envelope(self, snapshot: Snapshot | None) -> EnvelopeRecord | None:
        """Go on with the envelope in force; call it every cycle after `supervise`, with None when nothing answered.

        Returns:
            The envelope that ended in this call.
        """
        with self._acting():
            if not self._journal.leads:
                return None
            seeing = snapshot is not None and self.blocks.sees(snapshot, self._clock.now_s())
            return self._enveloping.watch(snapshot if seeing else None)

    def supervise(self, snapshot: Snapshot | None) -> tuple[Record, ...]:
        """Advance every open action by what is seen now; call it every cycle, with None when nothing answered.

        Returns:
            The actions that ended in this call, or since the last one by a stop from outside.
        """
        with self._acting():
            self._clock_watch.look()
            seeing = snapshot is not None and self.blocks.observe(snapshot, self._clock.now_s())
            if not self._journal.leads:
                return ()
            opened = self._opened()
            for record in reversed(opened):
                self._finish(record)
            stack = [r for r in self._opened() if r.state in (State.SETTLING, State.PROBATION)]
            if stack:
                self._judging.judge(stack, snapshot if seeing else None)
            halted, self._halted = self._halted, ()
            return (*halted, *self._ended(opened))

    def undo_open(self, reason: str) -> tuple[Record, ...]:
        """Undo everything that is not kept yet, youngest first, and the envelope in force."""
        with self._acting():
            if not self._journal.leads:
                return ()
            self._enveloping.close(reason)
            opened = self._opened()
            unsettled = [record for record in opened if record.state in (State.ARMED, State.UNKNOWN)]
            for record in reversed(unsettled):
                self._resolving.resolve(record, resume=False)
            self._judging.roll_back([record for record in opened if record not in unsettled], reason)
            return self._ended(opened)

    def stop(self, *, by: str) -> tuple[Record, ...]:
        """Halt all new changes and undo what is in flight."""
        self._journal.freeze(f"stopped by {by}", by=by, now_s=self._clock.now_s())
        return self.undo_open(f"stopped by {by}")

    def halt(self, reason: str) -> bool:
        """Undo what is in flight because somebody outside has frozen changes; whether nothing is left of it.

        Call it again until it is so. What ended is told by the next `supervise`.
        """
        if not self._turn.acquire(timeout=TURN_S):
            return False
        try:
            self._halted += self.undo_open(reason)
            return not self._opened() and self._enveloping.load() is None
        finally:
            self._turn.release()

    def recover(self) -> tuple[Record, ...]:
        """Resolve what a crash left behind, by reading back; call it at start, before anything is proposed.

        A verification in progress is not resumed: its window is broken, so the change is undone. Without the lease
        nothing is touched: what is open belongs to somebody else.
        """
        with self._acting():
            if not self._journal.leads:
                return ()
            now_s = self._clock.now_s()
            self._journal.note(None, "session_started", now_s, {"epoch": self._journal.epoch})
            self._enveloping.recover()
            unsent = self._journal.records({State.APPROVED})
            for record in unsent:
                reason = "restarted before the permit was committed"
                self._journal.end(record, State.NOTHING_DONE, now_s, reason, holds=record.action.before)
            return self._ended(unsent) + self.undo_open("restarted while the change was in flight")

    def _write(self, record: Record) -> Record:
        self._undoing.in_flight = (*self._undoing.in_flight, record)
        failed = self._actuator.write(record)
        if failed is not None:
            LOG.warning("action %s: %s", record.id, failed)
            self._journal.note(record.id, "write_failed", self._clock.now_s(), {"error": failed})
        return self._resolving.resolve(record, resume=True)

    def _finish(self, record: Record) -> None:
        """Go on with what an earlier cycle or a lost reply left undone."""
        if record.state in (State.ARMED, State.UNKNOWN):
            self._resolving.resolve(record, resume=record.state is State.UNKNOWN)
        elif record.state in (State.APPLIED, State.ROLLING_BACK):
            self._undoing.roll_back(record, record.end_reason or "left unfinished")
        elif record.id in self._judging.condemned:
            self._undoing.roll_back(record, *self._judging.condemned[record.id])

    def _opened(self) -> tuple[Record, ...]:
        self._undoing.in_flight = self._journal.open_records()
        return self._undoing.in_flight

    def _ended(self, records: tuple[Record, ...]) -> tuple[Record, ...]:
        now = [self._journal.record(record.id) for record in records]
        return tuple(record for record in now if record.outcome is not None)

    @contextmanager
    def _acting(self) -> Iterator[None]:
        """One thread at a time; when the store fails, what may be in flight is undone before anybody is told."""
        with self._turn:
            try:
                yield
            except StoreError:
                self._enveloping.without_journal()
                self._undoing.without_journal()
                raise
