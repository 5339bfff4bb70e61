"""Reading envelopes from the journal."""

from collections.abc import Collection

from sqlalchemy import Connection, select

from harness.envelope.record import IN_FORCE, EnvelopeRecord, EnvelopeState
from harness.envelope.row import record_from
from harness.errors import TransitionError
from harness.journal.reading import Event, JournalReader
from harness.journal.schema import ENVELOPE, EVENT


class EnvelopeReader(JournalReader):
    """One stack's envelopes in a store."""

    def envelope(self, envelope_id: int) -> EnvelopeRecord:
        """The present row of an envelope.

        Raises:
            TransitionError: there is none.
        """
        with self._store.begin() as connection:
            return self._envelope(connection, envelope_id)

    def envelopes(self, states: Collection[EnvelopeState] | None = None) -> tuple[EnvelopeRecord, ...]:
        """Envelopes in any of `states` (all if None), oldest first."""
        query = select(ENVELOPE).order_by(ENVELOPE.c.id)
        if self._stack is not None:
            query = query.where(ENVELOPE.c.stack == self._stack)
        if states is not None:
            query = query.where(ENVELOPE.c.state.in_([state.value for state in states]))
        with self._store.begin() as connection:
            return tuple(record_from(row) for row in connection.execute(query).mappings())

    def moves(self, envelope_id: int) -> tuple[Event, ...]:
        """The lines of the log that tell of an envelope, oldest first."""
        query = select(EVENT).where(self._about(), EVENT.c.what.startswith("envelope")).order_by(EVENT.c.seq)
        return tuple(event for event in self._events(query) if event.numbers.get("envelope_id") == envelope_id)

    def in_force(self) -> EnvelopeRecord | None:
        """The one that is open or being closed."""
        return next(iter(self.envelopes(IN_FORCE)), None)

    def _envelope(self, connection: Connection, envelope_id: int) -> EnvelopeRecord:
        row = connection.execute(select(ENVELOPE).where(ENVELOPE.c.id == envelope_id)).mappings().first()
        if row is None or self._stack not in (None, row["stack"]):
            raise TransitionError(f"envelope {envelope_id}: there is no such envelope")
        return record_from(row)
