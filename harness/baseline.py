"""What this stack's token times usually are at the work it has now: a slow drift shows against no window of its own."""

from collections import deque
from dataclasses import dataclass
from math import log

from stack.snapshot import Signal, Snapshot

KEPT_S = 3 * 3600.0
ALIKE = log(1.15)
"""Work counts as alike while requests and prompt tokens per second differ by at most 15 %."""
POINTS_MIN = 8
QUICK_SHARE = 0.25
"""The quickest quarter stands for the usual, so that a slowdown must last long before it looks usual itself."""
_WORK = (Signal.ARRIVED, Signal.PROMPT_TOKENS)


@dataclass(frozen=True)
class _Point:
    time_s: float
    settings: str
    work: tuple[float, ...]
    token_time_s: float


class Baseline:
    """Token times of the last hours with the work and the settings under which they were measured."""

    def __init__(self) -> None:
        self._points: deque[_Point] = deque()

    def observe(self, snapshot: Snapshot) -> None:
        """Learn from a snapshot; those that overlap the last one are passed over."""
        point = _point(snapshot)
        if point is None or snapshot.window_s is None:
            return
        if self._points and snapshot.begins_before(self._points[-1].time_s):
            return
        self._points.append(point)
        while point.time_s - self._points[0].time_s > KEPT_S:
            self._points.popleft()

    def usual_token_time_s(self, snapshot: Snapshot) -> float | None:
        """Mean time between tokens that is usual under these settings at this work; None when too little is known."""
        now = _point(snapshot)
        if now is None:
            return None
        alike = sorted(
            point.token_time_s
            for point in self._points
            if point.time_s < now.time_s and point.settings == now.settings and _alike(point.work, now.work)
        )
        return alike[int(QUICK_SHARE * len(alike))] if len(alike) >= POINTS_MIN else None


def _point(snapshot: Snapshot) -> _Point | None:
    token_time_s = snapshot.value(Signal.ITL_MEAN_S)
    rates = [snapshot.per_s(signal) for signal in _WORK]
    if snapshot.time_s is None or not token_time_s or not all(rates):
        return None
    settings = repr(sorted((name, sorted(held.items())) for name, held in snapshot.settings.items()))
    return _Point(snapshot.time_s, settings, tuple(log(rate) for rate in rates if rate), token_time_s)


def _alike(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return all(abs(a - b) <= ALIKE for a, b in zip(one, other, strict=True))
