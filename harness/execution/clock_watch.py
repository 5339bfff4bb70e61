"""Whether the clock was set: its time must pass as steadily as one that nobody can set."""

import math

from stack.clock import Clock


class ClockWatch:
    """Compares a clock with its own steady seconds from one look to the next.

    Args:
        step_max_s: how far apart they may come from one look to the next.
    """

    def __init__(self, clock: Clock, step_max_s: float) -> None:
        self._clock, self._step_max_s = clock, step_max_s
        self._apart_s = clock.now_s() - clock.steady_s()
        self._set_at_s = -math.inf

    def look(self) -> float:
        """For how long the clock has run steadily, as far as was seen; infinite when it was never seen to be set."""
        steady_s = self._clock.steady_s()
        apart_s = self._clock.now_s() - steady_s
        if abs(apart_s - self._apart_s) > self._step_max_s:
            self._set_at_s = steady_s
        self._apart_s = apart_s
        return steady_s - self._set_at_s
