"""The journal: what was decided and done. It, and nothing else, is the truth about effects."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Connection, insert, select, update
from sqlalchemy.exc import IntegrityError

from harness.action import AGENT, Action
from harness.approval import Approve, Edit, Reject
from harness.errors import TransitionError
from harness.gate.history import DAY_S, HOUR_S, History
from harness.journal.record import ENDED, LEGAL, OPEN, Permit, Record, State
from harness.journal.row import action_row, permit_row, record_from, verdict_row, verification_row
from harness.journal.schema import ACTION, EVENT, FREEZE
from harness.journal.store import Store
from harness.mode import Mode
from harness.outcome import Measured, Verification
from harness.verdict import Ruling, Verdict
from stack.clock import Clock, WallClock
from stack.errors import UnknownSettingError
from stack.setting import SettingClass, Value

AUTO = "auto"
"""Who decided when nobody was asked."""
REFUSALS_S = 3 * HOUR_S
"""How far back the gate looks for refusals; for changes it is a day."""


@dataclass(frozen=True)
class Event:
    """One line of the log."""

    seq: int
    action_id: int | None
    time_s: float
    at: datetime
    what: str
    numbers: Mapping[str, Any]


class Journal:
    """Actions and their events in a store. Every state change is a guarded update in one transaction with its event."""

    def __init__(self, store: Store, *, stack: str = "stack", wall: Clock | None = None) -> None:
        self._store = store
        self._stack = stack
        self._wall = wall or WallClock()

    def propose(
        self,
        action: Action,
        verdict: Verdict,
        *,
        mode: Mode,
        now_s: float,
        expiry_s: float = 600.0,
        key: str | None = None,
    ) -> Record:
        """Store a proposal with the gate's verdict; its state follows from verdict and mode.

        Args:
            expiry_s: wall time a person has to decide.
            key: makes the call repeatable: a second proposal with the same key is the first one.
        """
        state = _first_state(verdict, mode)
        with self._store.begin() as connection:
            if key is not None:
                known = connection.execute(select(ACTION).where(ACTION.c.key == key)).mappings().first()
                if known is not None:
                    return record_from(known)
            action_id = self._insert(connection, action, verdict, now_s, expiry_s, key)
            columns: dict[str, object] = {
                "decided_by": AUTO if state is State.APPROVED else None,
                "end_reason": "; ".join(hit.detail for hit in verdict.hits) if state is State.DENIED else None,
            }
            self._move(connection, action_id, State.PROPOSED, state, now_s, _why(verdict), **columns)
        return self.record(action_id)

    def decide(self, action_id: int, decision: Approve | Reject, *, now_s: float) -> Record:
        """A person's answer, valid once and until the proposal expires.

        Raises:
            TransitionError: it was decided already, has expired, or does not wait for a decision.
        """
        self.expire(now_s=now_s)
        approved = isinstance(decision, Approve)
        reason = decision.reason if isinstance(decision, Reject) else ""
        self.move(
            action_id,
            State.AWAITING_APPROVAL,
            State.APPROVED if approved else State.REJECTED,
            now_s,
            {"by": decision.by, "reason": reason},
            decided_by=decision.by,
            end_reason=None if approved else f"rejected by {decision.by}{': ' if reason else ''}{reason}",
        )
        return self.record(action_id)

    def edit(
        self, action_id: int, decision: Edit, verdict: Verdict, *, now_s: float, expiry_s: float = 600.0
    ) -> Record:
        """Replace a waiting proposal by one with another value, which the gate has judged anew.

        The new one is approved by the person who edited it unless the gate denies it.

        Raises:
            TransitionError: the proposal does not wait for a decision any more.
        """
        self.expire(now_s=now_s)
        action = decision.of(self.record(action_id).action)
        state = State.DENIED if verdict.ruling is Ruling.DENY else State.APPROVED
        with self._store.begin() as connection:
            edited = self._insert(connection, action, verdict, now_s, expiry_s, None)
            numbers = {"by": decision.by, "replaced_by": edited}
            reason = f"edited by {decision.by}, replaced by {edited}"
            columns: dict[str, object] = {"decided_by": decision.by, "end_reason": reason}
            self._move(connection, action_id, State.AWAITING_APPROVAL, State.REJECTED, now_s, numbers, **columns)
            why = _why(verdict) | {"replaces": action_id}
            self._move(connection, edited, State.PROPOSED, state, now_s, why, decided_by=decision.by)
        return self.record(edited)

    def expire(self, *, now_s: float) -> None:
        """End proposals nobody decided on in time."""
        late = select(ACTION.c.id).where(
            ACTION.c.stack == self._stack,
            ACTION.c.state == State.AWAITING_APPROVAL.value,
            ACTION.c.expires_at <= self.wall_now(),
        )
        with self._store.begin() as connection:
            for action_id in connection.execute(late).scalars().all():
                reason = "nobody decided in time"
                columns: dict[str, object] = {"end_reason": reason}
                self._move(connection, action_id, State.AWAITING_APPROVAL, State.EXPIRED, now_s, {}, **columns)

    def arm(self, action_id: int, permit: Permit, now_s: float) -> None:
        """Commit the permit: from here on the undo is stored, and the writes in it may be sent.

        Raises:
            TransitionError: the action is not approved, or another change is in flight.
        """
        numbers = permit_row(permit)
        try:
            self.move(action_id, State.APPROVED, State.ARMED, now_s, numbers, permit=numbers, armed_s=now_s)
        except IntegrityError as error:
            raise TransitionError(f"action {action_id}: another change is in flight") from error

    def move(
        self,
        action_id: int,
        source: State,
        to: State,
        now_s: float,
        numbers: Mapping[str, object] | None = None,
        **columns: object,
    ) -> None:
        """Change an action's state from exactly `source`, and log it, in one transaction.

        Raises:
            TransitionError: not legal, or the action is not in `source` any more.
        """
        with self._store.begin() as connection:
            self._move(connection, action_id, source, to, now_s, numbers or {}, **columns)

    def end(
        self,
        record: Record,
        to: State,
        now_s: float,
        reason: str,
        *,
        holds: Value | None,
        verification: Verification | None = None,
        touched_s: float | None = None,
    ) -> Record:
        """Move an action into one of the four endings.

        Raises:
            TransitionError: not legal; keeping without a measured improvement is not either.
        """
        if to is State.KEPT and (verification is None or verification.measured is not Measured.IMPROVED):
            raise TransitionError(f"action {record.id}: kept needs a measured improvement")
        verification = verification or record.verification
        row = None if verification is None else verification_row(verification)
        self.move(
            record.id,
            record.state,
            to,
            now_s,
            {"reason": reason, "holds": holds, "verification": row},
            ended_s=now_s,
            touched_s=record.touched_s if touched_s is None else touched_s,
            end_reason=reason,
            holds=holds,
            verification=row,
        )
        return self.record(record.id)

    def note(self, action_id: int | None, what: str, now_s: float, numbers: Mapping[str, object]) -> None:
        """Log something that changes no state."""
        with self._store.begin() as connection:
            self._log(connection, action_id, what, now_s, numbers)

    def record(self, action_id: int) -> Record:
        """The present row of an action.

        Raises:
            TransitionError: there is none.
        """
        with self._store.begin() as connection:
            row = connection.execute(select(ACTION).where(ACTION.c.id == action_id)).mappings().first()
        if row is None:
            raise TransitionError(f"action {action_id}: there is no such action")
        return record_from(row)

    def records(self, states: Collection[State] | None = None) -> tuple[Record, ...]:
        """Actions of this stack in any of `states` (all states if None), oldest first."""
        query = select(ACTION).where(ACTION.c.stack == self._stack).order_by(ACTION.c.id)
        if states is not None:
            query = query.where(ACTION.c.state.in_([state.value for state in states]))
        with self._store.begin() as connection:
            return tuple(record_from(row) for row in connection.execute(query).mappings())

    def open_records(self) -> tuple[Record, ...]:
        """Actions between permit and ending, oldest write first."""
        return tuple(sorted(self.records(OPEN), key=lambda r: (r.armed_s or 0.0, r.id)))

    def ended(self) -> tuple[Record, ...]:
        """Actions that came to one of the four endings, oldest first."""
        return self.records(ENDED)

    def events(self, action_id: int | None = None) -> tuple[Event, ...]:
        """The log, oldest first; of one action if named."""
        query = select(EVENT).order_by(EVENT.c.seq)
        if action_id is not None:
            query = query.where(EVENT.c.action_id == action_id)
        with self._store.begin() as connection:
            return tuple(Event(**row) for row in connection.execute(query).mappings())

    def freeze(self, reason: str, *, by: str, now_s: float) -> None:
        """Halt all new changes until a person lifts it."""
        self._switch(True, reason, by, now_s)

    def unfreeze(self, reason: str, *, by: str, now_s: float) -> None:
        """Allow changes again."""
        self._switch(False, reason, by, now_s)

    def frozen(self) -> str | None:
        """Why changes are halted; None when they are not."""
        with self._store.begin() as connection:
            last = connection.execute(select(FREEZE).order_by(FREEZE.c.seq.desc()).limit(1)).mappings().first()
        return last["reason"] if last is not None and last["frozen"] else None

    def history(self, now_s: float, *, watched_s: float = 0.0) -> History:
        """What the gate needs to know of the past: recent and open actions that wrote, refusals, and the freeze."""
        # What was written in part and taken back at once was never applied as a whole, but it was written.
        written = [r for r in self.records(OPEN | ENDED - {State.NOTHING_DONE}) if r.armed_s is not None]
        recent = [r for r in written if r.is_open or (r.touched_s or r.armed_s or 0.0) >= now_s - DAY_S]
        past = sorted((r.past for r in recent), key=lambda p: p.written_s)
        return History(tuple(past), self.frozen(), watched_s, self._refused_s(now_s - REFUSALS_S))

    def _refused_s(self, since_s: float) -> tuple[float, ...]:
        """When the planner made the proposals that were denied or rejected."""
        refused = select(ACTION.c.proposed_s, ACTION.c.proposal).where(
            ACTION.c.stack == self._stack,
            ACTION.c.state.in_([State.DENIED.value, State.REJECTED.value]),
            ACTION.c.proposed_s >= since_s,
        )
        with self._store.begin() as connection:
            rows = connection.execute(refused).all()
        return tuple(proposed_s for proposed_s, proposal in rows if proposal["requested_by"] == AGENT)

    def wall_now(self) -> datetime:
        """Wall time, UTC."""
        return datetime.fromtimestamp(self._wall.now_s(), UTC)

    def _switch(self, frozen: bool, reason: str, by: str, now_s: float) -> None:
        with self._store.begin() as connection:
            row = {"time_s": now_s, "at": self.wall_now(), "frozen": frozen, "reason": reason, "by": by}
            connection.execute(insert(FREEZE).values(**row))
            self._log(connection, None, "freeze" if frozen else "unfreeze", now_s, {"reason": reason, "by": by})

    def _insert(
        self, connection: Connection, action: Action, verdict: Verdict, now_s: float, expiry_s: float, key: str | None
    ) -> int:
        result = connection.execute(
            insert(ACTION).values(
                key=key,
                stack=self._stack,
                state=State.PROPOSED.value,
                setting=action.setting,
                target=action.target,
                setting_class=_class_of(action),
                proposal=action_row(action),
                verdict=verdict_row(verdict),
                proposed_s=now_s,
                expires_at=self.wall_now() + timedelta(seconds=expiry_s),
            )
        )
        action_id = int(result.inserted_primary_key[0])  # type: ignore[index]
        self._log(connection, action_id, State.PROPOSED.value, now_s, action_row(action))
        return action_id

    def _move(
        self,
        connection: Connection,
        action_id: int,
        source: State,
        to: State,
        now_s: float,
        numbers: Mapping[str, object],
        **columns: object,
    ) -> None:
        if to not in LEGAL.get(source, frozenset()):
            raise TransitionError(f"action {action_id}: there is no way from {source} to {to}")
        guarded = update(ACTION).where(ACTION.c.id == action_id, ACTION.c.state == source.value)
        if connection.execute(guarded.values(state=to.value, **columns)).rowcount != 1:
            raise TransitionError(f"action {action_id}: expected it to be {source}, somebody else moved it")
        self._log(connection, action_id, to.value, now_s, numbers)

    def _log(
        self, connection: Connection, action_id: int | None, what: str, now_s: float, numbers: Mapping[str, object]
    ) -> None:
        row = {"action_id": action_id, "time_s": now_s, "at": self.wall_now(), "what": what, "numbers": dict(numbers)}
        connection.execute(insert(EVENT).values(**row))


def _first_state(verdict: Verdict, mode: Mode) -> State:
    if verdict.ruling is Ruling.DENY:
        return State.DENIED
    if mode is Mode.SHADOW:
        return State.SHADOWED
    return State.APPROVED if verdict.ruling is Ruling.ALLOW else State.AWAITING_APPROVAL


def _why(verdict: Verdict) -> dict[str, object]:
    return {"verdict": verdict_row(verdict)}


def _class_of(action: Action) -> str:
    """The class of its setting; an unknown setting is never changed, which is what class D says."""
    try:
        return action.declaration.setting_class.value
    except UnknownSettingError:
        return SettingClass.D.value
