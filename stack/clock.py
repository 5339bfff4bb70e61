"""One injected clock: windows, cooldowns and verification run in stack time, approvals expire in wall time."""

import time
from typing import Protocol


class Clock(Protocol):
    """Seconds since the Unix epoch, UTC, and a way to let them pass."""

    def now_s(self) -> float:
        """The present time."""
        ...

    def sleep(self, seconds: float) -> None:
        """Return after `seconds` of this clock have passed."""
        ...


class WallClock:
    """The machine's own time."""

    def now_s(self) -> float:
        """The present time."""
        return time.time()

    def sleep(self, seconds: float) -> None:
        """Return after `seconds`."""
        time.sleep(seconds)
