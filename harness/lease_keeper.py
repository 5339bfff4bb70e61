"""Keeping the lease of a session, and obeying a stop from another process within seconds, whatever the session does."""

import logging
import threading
from types import TracebackType
from typing import Self

from harness.errors import LeaseLostError
from harness.execution import Executor
from harness.journal.journal import Journal
from stack.clock import Clock
from stack.errors import FlashVectorError

LOG = logging.getLogger(__name__)
EVERY_S = 1.0
RENEW_S = 5.0
"""Each renewal is a write that waits for the disk."""


class LeaseKeeper:
    """For the length of a block, in a thread of its own: looks for a stop about once a second, and renews the lease.

    At the end the lease is let go.

    Args:
        clock: stack time.
    """

    def __init__(self, journal: Journal, executor: Executor, clock: Clock) -> None:
        self._journal, self._executor, self._clock = journal, executor, clock
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lease keeper", daemon=True)
        self._ticks = 0

    def __enter__(self) -> Self:
        """Begin to renew and to listen."""
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """End both, and let go of the lease."""
        self._over.set()
        self._thread.join()
        try:
            self._journal.release()
        except FlashVectorError as failure:
            LOG.warning("the lease was not let go of, so the next session waits for its end: %s", failure)

    def tick(self) -> None:
        """Listen once, and renew when that is due.

        Raises:
            LeaseLostError: somebody else has taken over, so there is nothing to listen for any more.
            StoreError: the store does not answer; what it says will be seen next time.
        """
        if self._ticks % round(RENEW_S / EVERY_S) == 0:
            self._journal.hold()
        self._ticks += 1
        asked = self._journal.halt_asked()
        if asked is not None and self._executor.halt(f"stopped by {asked.numbers['by']}"):
            self._journal.answer_halt(asked, now_s=self._clock.now_s())

    def _run(self) -> None:
        while not self._over.wait(EVERY_S):
            try:
                self.tick()
            except LeaseLostError as error:
                LOG.error("%s", error)
                return
            except FlashVectorError as error:
                LOG.warning("not listening for a stop just now: %s", error)
