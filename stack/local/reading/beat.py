"""Something done every so many seconds in the background, until it is stopped."""

import logging
import threading
import time
from collections.abc import Callable, Iterable

logger = logging.getLogger(__name__)


class Beat:
    """One thread that calls `action` at once and then every `interval_s`; a beat missed is not made up for.

    Args:
        action: what is done. What it raises is logged, and the next beat comes all the same.
        name: of the thread.
    """

    def __init__(self, action: Callable[[], None], interval_s: float, name: str) -> None:
        self._action, self._interval_s = action, interval_s
        self._stopping, self._done_once = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def ask_to_stop(self) -> None:
        """End after the beat in progress, without waiting for that."""
        self._stopping.set()

    def join(self, timeout_s: float) -> None:
        """Wait until the thread has ended."""
        if self._thread.ident is not None:
            self._thread.join(timeout_s)

    def wait_for_first(self, timeout_s: float) -> bool:
        """Wait until the first beat is over; whether it is."""
        return self._done_once.wait(timeout_s)

    def _run(self) -> None:
        while not self._stopping.is_set():
            began_s = time.monotonic()
            self._act()
            self._done_once.set()
            self._stopping.wait(max(0.0, self._interval_s - (time.monotonic() - began_s)))

    def _act(self) -> None:
        try:
            self._action()
        except Exception:
            logger.exception("%s failed; it is tried again", self._thread.name)


class Beats:
    """Several, started and stopped together."""

    def __init__(self, beats: Iterable[Beat]) -> None:
        self._beats = tuple(beats)

    def start(self) -> None:
        """Begin all."""
        for beat in self._beats:
            beat.start()

    def stop(self, timeout_s: float) -> None:
        """End all: each is asked before the first is waited for, at most `timeout_s`."""
        for beat in self._beats:
            beat.ask_to_stop()
        for beat in self._beats:
            beat.join(timeout_s)

    def wait_for_first(self, timeout_s: float) -> None:
        """Wait until each has done its first, at most `timeout_s`."""
        for beat in self._beats:
            beat.wait_for_first(timeout_s)
