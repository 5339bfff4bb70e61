"""One injected clock: windows, cooldowns and verification run in stack time, approvals expire in wall time."""

import time
from typing import Protocol


class Clock(Protocol):
    """Seconds since the Unix epoch, UTC, and a way to let them pass."""

    def now_s(self) -> float:
        """The present time."""
        ...

    def steady_s(self) -> float:
        """Seconds that pass as fast and that nobody can set; what they are counted from has no meaning."""
        ...

    def sleep(self, seconds: float) -> None:
        """Return after `seconds` of this clock have passed."""
        ...


class WallClock:
    """The machine's own time."""

    def now_s(self) -> float:
        """The present time."""
        return time.time()

    def steady_s(self) -> float:
        """Seconds since boot, those in which the machine slept included."""
        return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))

    def sleep(self, seconds: float) -> None:
        """Return after `seconds`."""
        time.sleep(seconds)
