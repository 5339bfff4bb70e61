"""Reading the journal: actions, the log, the freeze switch, and the past as the gate sees it."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, and_, func, or_, select

from harness.action import AGENT
from harness.envelope.record import IN_FORCE, EnvelopeRecord
from harness.envelope.row import record_from as envelope_from
from harness.errors import TransitionError
from harness.gate.history import DAY_S, HOUR_S, History
from harness.journal.record import ENDED, OPEN, Record, State
from harness.journal.row import record_from
from harness.journal.schema import ACTION, ENVELOPE, EVENT, HEAD
from harness.journal.store import Store

REFUSALS_S = 3 * HOUR_S
"""How far back the gate looks for refusals; for changes it is a day."""
FREEZE, UNFREEZE, HALTED = "freeze", "unfreeze", "halted"
ENVELOPE_OPENED, ENVELOPE_ENDED = "envelope_opened", "envelope_ended"
_UNDOING = (State.ROLLING_BACK, State.ROLLED_BACK, State.NEEDS_PERSON)
STATE_CHANGES = (
    State.APPLIED.value,
    *(state.value for state in _UNDOING),
    FREEZE,
    UNFREEZE,
    ENVELOPE_OPENED,
    ENVELOPE_ENDED,
)
"""Lines after which the stack may hold other values than before, or changes may be halted where they were not.

Moves inside an envelope are not among them: what it may do was decided when it was opened.
"""


@dataclass(frozen=True)
class Event:
    """One line of the log, see harness.journal.chain for its hashes."""

    seq: int
    stack: str | None
    action_id: int | None
    time_s: float
    at: datetime
    what: str
    numbers: Mapping[str, Any]
    action_digest: str | None
    previous_hash: str
    hash: str


class JournalReader:
    """One stack's actions and their log in a store.

    Args:
        stack: whose; None for all that share the store.
    """

    def __init__(self, store: Store, *, stack: str | None = None) -> None:
        self._store = store
        self._stack = stack
        # Asked in most transactions; making a statement takes as long as carrying it out.
        switches = select(EVENT.c.what, EVENT.c.numbers).where(self._about(), EVENT.c.what.in_((FREEZE, UNFREEZE)))
        self._last_switch = switches.order_by(EVENT.c.seq.desc()).limit(1)
        self._last_change = select(func.max(EVENT.c.seq)).where(self._about(), EVENT.c.what.in_(STATE_CHANGES))

    def record(self, action_id: int) -> Record:
        """The present row of an action.

        Raises:
            TransitionError: there is none.
        """
        with self._store.begin() as connection:
            return self._record(connection, action_id)

    def record_and_version(self, action_id: int) -> tuple[Record, int]:
        """The present row of an action, and the stack's `state_version` at the same moment.

        Raises:
            TransitionError: there is none.
        """
        with self._store.begin() as connection:
            return self._record(connection, action_id), self._state_version(connection)

    def records(self, states: Collection[State] | None = None, *, since_s: float | None = None) -> tuple[Record, ...]:
        """Actions in any of `states` (all states if None), proposed at or after `since_s`, oldest first."""
        query = self._actions()
        if states is not None:
            query = query.where(ACTION.c.state.in_(_names(states)))
        if since_s is not None:
            query = query.where(ACTION.c.proposed_s >= since_s)
        with self._store.begin() as connection:
            return tuple(record_from(row) for row in connection.execute(query).mappings())

    def open_records(self) -> tuple[Record, ...]:
        """Actions between permit and ending, oldest write first."""
        return tuple(sorted(self.records(OPEN), key=lambda r: (r.armed_s or 0.0, r.id)))

    def ended(self) -> tuple[Record, ...]:
        """Actions that came to one of the four endings, oldest first."""
        return self.records(ENDED)

    def wrote(self, since_s: float) -> tuple[Record, ...]:
        """Open actions, and ended ones that wrote and were last touched since then."""
        with self._store.begin() as connection:
            return self._wrote(connection, since_s)

    def ended_after(self, line: int) -> tuple[int, tuple[Record, ...]]:
        """Actions whose ending stands in the log after a line, and the number of the log's last line."""
        endings = select(EVENT.c.action_id).where(EVENT.c.seq > line, EVENT.c.what.in_(_names(ENDED)))
        query = self._actions().where(ACTION.c.id.in_(endings))
        with self._store.begin() as connection:
            last: int = connection.execute(select(HEAD.c.seq)).scalar_one()
            return last, tuple(record_from(row) for row in connection.execute(query).mappings())

    def events(self, action_id: int | None = None) -> tuple[Event, ...]:
        """The log, oldest first; of one action if named."""
        query = select(EVENT).where(self._about()).order_by(EVENT.c.seq)
        if action_id is not None:
            query = query.where(EVENT.c.action_id == action_id)
        return self._events(query)

    def stacks(self) -> tuple[str, ...]:
        """Every stack that the log tells of."""
        with self._store.begin() as connection:
            named = select(EVENT.c.stack).where(EVENT.c.stack.is_not(None)).distinct().order_by(EVENT.c.stack)
            return tuple(connection.execute(named).scalars())

    def frozen(self) -> str | None:
        """Why changes are halted; None when they are not."""
        with self._store.begin() as connection:
            return self._frozen(connection)

    def halt_asked(self) -> Event | None:
        """The freeze with which another process asked to undo what is in flight, while nobody has answered it."""
        switches = select(EVENT).where(self._about(), EVENT.c.what.in_((FREEZE, UNFREEZE, HALTED)))
        for event in reversed(self._events(switches.order_by(EVENT.c.seq))):
            if event.what != FREEZE:
                return None
            if event.numbers.get("halt"):
                return event
        return None

    def state_version(self) -> int:
        """Number of the last line that changed the state of the stack; grows with every such change."""
        with self._store.begin() as connection:
            return self._state_version(connection)

    def history(self, now_s: float, *, watched_s: float = 0.0) -> History:
        """What the gate needs to know of the past: recent and open actions that wrote, refusals, and the freeze."""
        with self._store.begin() as connection:
            wrote, enveloped = self._wrote(connection, now_s - DAY_S), self._enveloped(connection, now_s - DAY_S)
            frozen, refused_s = self._frozen(connection), self._refused_s(connection, now_s - REFUSALS_S)
        moves = (past for record in enveloped for past in record.past)
        past = sorted((*(record.past for record in wrote), *moves), key=lambda p: p.written_s)
        leave = next((record.leave for record in enveloped if record.state in IN_FORCE), None)
        return History(tuple(past), frozen, watched_s, refused_s, leave=leave)

    def _record(self, connection: Connection, action_id: int) -> Record:
        row = connection.execute(select(ACTION).where(ACTION.c.id == action_id)).mappings().first()
        if row is None or self._stack not in (None, row["stack"]):
            raise TransitionError(f"action {action_id}: there is no such action")
        return record_from(row)

    def _wrote(self, connection: Connection, since_s: float) -> tuple[Record, ...]:
        """Open actions, and ended ones that wrote and were last touched since then.

        What was written in part and taken back at once was never applied as a whole, but it was written.
        """
        ended = ACTION.c.state.in_(_names(ENDED - {State.NOTHING_DONE}))
        late = func.coalesce(ACTION.c.touched_s, ACTION.c.armed_s) >= since_s
        query = self._actions().where(or_(ACTION.c.state.in_(_names(OPEN)), and_(ended, late)))
        return tuple(record_from(row) for row in connection.execute(query).mappings())

    def _enveloped(self, connection: Connection, since_s: float) -> tuple[EnvelopeRecord, ...]:
        """The envelope in force, and ended ones that wrote to the stack since then."""
        in_force = ENVELOPE.c.state.in_([state.value for state in IN_FORCE])
        query = select(ENVELOPE).where(ENVELOPE.c.stack == self._stack, or_(in_force, ENVELOPE.c.touched_s >= since_s))
        return tuple(envelope_from(row) for row in connection.execute(query.order_by(ENVELOPE.c.id)).mappings())

    def _frozen(self, connection: Connection) -> str | None:
        last = connection.execute(self._last_switch).first()
        return str(last.numbers["reason"]) if last is not None and last.what == FREEZE else None

    def _refused_s(self, connection: Connection, since_s: float) -> tuple[float, ...]:
        """When the planner made the proposals that were denied or rejected."""
        refused = select(ACTION.c.proposed_s, ACTION.c.proposal).where(
            ACTION.c.stack == self._stack,
            ACTION.c.state.in_(_names((State.DENIED, State.REJECTED))),
            ACTION.c.proposed_s >= since_s,
        )
        rows = connection.execute(refused)
        return tuple(proposed_s for proposed_s, proposal in rows if proposal["requested_by"] == AGENT)

    def _state_version(self, connection: Connection) -> int:
        return connection.execute(self._last_change).scalar() or 0

    def _about(self) -> ColumnElement[bool]:
        """Lines about this stack; those of older releases that name none are about every stack."""
        if self._stack is None:
            return EVENT.c.seq > 0
        return or_(EVENT.c.stack == self._stack, EVENT.c.stack.is_(None))

    def _actions(self) -> Select[Any]:
        query = select(ACTION).order_by(ACTION.c.id)
        return query if self._stack is None else query.where(ACTION.c.stack == self._stack)

    def _events(self, query: Select[Any]) -> tuple[Event, ...]:
        with self._store.begin() as connection:
            return tuple(Event(**row) for row in connection.execute(query).mappings())


def _names(states: Collection[State]) -> list[str]:
    return [state.value for state in states]
