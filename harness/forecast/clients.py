"""Clients who each wait for their answer before they ask again: arrivals then follow what is answered."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

from stack.snapshot import Signal, Snapshot

TURNOVERS = 2.0
"""So many times all of them must have been answered and have asked again."""
TOLERANCE_RATIO = 0.04
"""Numbers of requests in the stack count as equal within this or one; with open arrivals they vary by their root."""
WINDOWS_MIN, FULL_SHARE = 2, 0.75
"""So many windows must have the same ceiling, and so many looks find it reached: pauses are rare or short ..."""
WINDOWS_SURE = 4
"""... or so many windows have it: open arrivals reach the same height by chance that often in one of fifty cases."""
FEWEST = 2
PAUSE_MIN_RATIO = 0.05
"""Shorter pauses, against the time of an answer, are none."""
INSIDE = (Signal.RUNNING, Signal.WAITING, Signal.GATEWAY_QUEUE)


@dataclass(frozen=True)
class Clients:
    """Who asks.

    Attributes:
        count: clients, 0 where arrivals do not wait for answers.
        pause_s: mean time from an answer to the client's next request.
        unsure: how many there may be, where too little was seen to tell; else 0.
    """

    count: int = 0
    pause_s: float = 0.0
    unsure: int = 0

    def times(self, ratio: float) -> "Clients":
        """So many times as many, but not none."""
        return replace(self, count=max(1, round(self.count * ratio)) if self.count else 0)


NOBODY_WAITS = Clients()


def clients_in(snapshots: Sequence[Snapshot]) -> Clients:
    """The clients whose number is the ceiling of the requests in the stack, in every window and most of the time.

    Args:
        snapshots: oldest first; the newest ones in a row with the same ceiling count.
    """
    looks: list[float] = []
    peaks: list[float] = []
    pauses_s: list[float] = []
    answered = 0.0
    for snapshot in reversed(snapshots):
        found = _inside(snapshot)
        if not found or not _equal([*peaks, max(found)]):
            break
        looks += found[:2]
        peaks.append(max(found))
        answered += snapshot.value(Signal.FINISHED) or 0.0
        pauses_s += _pauses_s(snapshot, max(found))
    count = round(max(peaks, default=0.0))
    if count < FEWEST or answered < TURNOVERS * count or len(peaks) < WINDOWS_MIN:
        return NOBODY_WAITS
    if not _ceiling(looks, peaks, float(count)):
        return Clients(unsure=count)
    return Clients(count, median(pauses_s) if pauses_s else 0.0)


def _ceiling(looks: Sequence[float], peaks: Sequence[float], count: float) -> bool:
    full = sum(_equal([look, count]) for look in looks)
    return len(peaks) >= WINDOWS_SURE or full >= FULL_SHARE * len(looks)


def _pauses_s(snapshot: Snapshot, count: float) -> list[float]:
    """Interactive response time law: clients over throughput is the time of an answer and the pause together.

    Told by every window for itself, since settings may have changed between them, and the median counts, since a window
    in which the clients only began tells of no pause.
    """
    answer_s, per_s = snapshot.value(Signal.E2E_MEAN_S), snapshot.per_s(Signal.FINISHED)
    if not answer_s or not per_s:
        return []
    pause_s = count / per_s - answer_s
    return [pause_s if pause_s > PAUSE_MIN_RATIO * answer_s else 0.0]


def _inside(snapshot: Snapshot) -> list[float]:
    """Requests in the stack at a window's start and end, and at its most where the gateway tells."""
    sessions = snapshot.fact(Signal.GATEWAY_SESSIONS)
    queue = snapshot.fact(Signal.GATEWAY_QUEUE)
    if sessions is not None and sessions.start is not None and (queue is None or not queue.peak):
        return [sessions.start, sessions.value, sessions.peak or sessions.value]
    facts = [fact for signal in INSIDE if (fact := snapshot.fact(signal)) is not None]
    if not facts or any(fact.start is None for fact in facts):
        return []
    return [sum(fact.start or 0.0 for fact in facts), sum(fact.value for fact in facts)]


def _equal(numbers: Sequence[float]) -> bool:
    low, high = min(numbers), max(numbers)
    return high > 0 and high - low <= max(1.0, TOLERANCE_RATIO * high)
