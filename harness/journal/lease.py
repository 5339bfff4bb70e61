"""The lease: one process at a time may change a stack, and one that was taken for dead can do no harm when it wakes.

It is a row of the store. Whoever takes it raises its epoch, and every transaction of a holder demands the epoch it
took. No two clocks are compared: a taker watches the row for the lease's length, on its own clock, and takes it over
only if it was not renewed meanwhile. The lock in a local stack's run folder keeps a second session of this machine out;
the lease holds wherever the store is shared, and when that lock is lost.
"""

from dataclasses import dataclass
from typing import Self

from sqlalchemy import Connection, bindparam, delete, insert, select, update

from harness.errors import LeaseHeldError, LeaseLostError
from harness.journal.holder import Holder
from harness.journal.schema import LEASE
from harness.journal.store import Store
from stack.clock import Clock, WallClock

LEASE_S = 30.0
"""Silence of a holder after which it is taken for dead; a holder renews every few seconds."""
WATCH_EVERY_S = 0.5
RENEW = (
    update(LEASE)
    .where(LEASE.c.stack == bindparam("ours"), LEASE.c.epoch == bindparam("taken"), LEASE.c.released.is_(False))
    .values(renewals=LEASE.c.renewals + 1)
)
"""Made once, as in harness.journal.ledger."""
MARGIN_RATIO = 1 / 6
"""Share of the lease kept for one call to the stack: what begins before it is over before somebody else may begin."""


@dataclass(frozen=True)
class LeaseRow:
    """The lease of a stack as it stands in the store."""

    stack: str
    epoch: int
    renewals: int
    released: bool
    holder: Holder

    @property
    def is_free(self) -> bool:
        """Whether nobody can hold it any more."""
        return self.released or self.holder.is_gone


class Lease:
    """A lease that was taken; see `take`."""

    def __init__(self, stack: str, epoch: int, clock: Clock, length_s: float, renewed_s: float) -> None:
        self.stack, self.epoch, self._clock, self._length_s = stack, epoch, clock, length_s
        self._renewed_s = renewed_s

    @classmethod
    def take(cls, store: Store, stack: str, *, clock: Clock | None = None, length_s: float = LEASE_S) -> Self:
        """Become the one that may change `stack`.

        Args:
            clock: measures how long another holder is watched for a sign of life, in seconds that nobody can set.
            length_s: how long; the same for all who share the store.

        Raises:
            LeaseHeldError: another holder is alive.
        """
        clock = clock or WallClock()
        found = lease_of(store, stack)
        if found is not None and not found.is_free:
            _watch(store, found, clock, length_s)
        begun_s = clock.steady_s()
        with store.begin() as connection:
            if _row(connection, stack) != found:
                raise LeaseHeldError(f"another FlashVector has just begun to look after {stack}; end it first")
            epoch = 1 if found is None else found.epoch + 1
            connection.execute(delete(LEASE).where(LEASE.c.stack == stack))
            holder = Holder.here()
            place = {"machine": holder.machine, "pid": holder.pid, "start_ticks": holder.start_ticks}
            connection.execute(insert(LEASE).values(stack=stack, epoch=epoch, renewals=0, released=False, **place))
        return cls(stack, epoch, clock, length_s, begun_s)

    def renew(self, connection: Connection) -> float:
        """Renew it within a transaction, and when, on its own clock; tell `renewed` once that is committed.

        Raises:
            LeaseLostError: somebody else has taken it.
        """
        now_s = self._clock.steady_s()
        if connection.execute(RENEW, {"ours": self.stack, "taken": self.epoch}).rowcount != 1:
            message = f"the lease on {self.stack} (epoch {self.epoch}) was taken over, so this process writes no more"
            raise LeaseLostError(f"{message}; the new holder undoes what was in flight")
        return now_s

    def renewed(self, at_s: float) -> None:
        """The renewal begun at `at_s` is committed."""
        self._renewed_s = at_s

    @property
    def surely_held(self) -> bool:
        """Whether nobody can have taken it yet, even if the store does not answer now, nor for one call to a stack."""
        return self._clock.steady_s() - self._renewed_s < self._length_s * (1 - MARGIN_RATIO)

    def release(self, store: Store) -> None:
        """Let go of it, if it is still ours, so that the next holder need not wait."""
        with store.begin() as connection:
            ours = (LEASE.c.stack == self.stack, LEASE.c.epoch == self.epoch)
            connection.execute(update(LEASE).where(*ours).values(released=True))


def lease_of(store: Store, stack: str) -> LeaseRow | None:
    """The lease of a stack as it stands; None when there never was one."""
    with store.begin() as connection:
        return _row(connection, stack)


def _watch(store: Store, found: LeaseRow, clock: Clock, length_s: float) -> None:
    """Return when a holder has given no sign of life for the lease's length."""
    until_s = clock.steady_s() + length_s
    while clock.steady_s() < until_s:
        clock.sleep(WATCH_EVERY_S)
        if lease_of(store, found.stack) != found:
            holder = f"{found.holder.name}, lease epoch {found.epoch}"
            raise LeaseHeldError(f"another FlashVector looks after {found.stack} ({holder}); end it first")


def _row(connection: Connection, stack: str) -> LeaseRow | None:
    row = connection.execute(select(LEASE).where(LEASE.c.stack == stack)).mappings().first()
    if row is None:
        return None
    holder = Holder(row["machine"], row["pid"], row["start_ticks"])
    return LeaseRow(stack, row["epoch"], row["renewals"], row["released"], holder)
