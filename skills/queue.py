"""Queues: how long, and whether they go away by themselves."""

from skills.replica import Replica
from stack.snapshot import Fact, Signal

SOON_MIN = 1.0
"""A queue that will be empty within this many minutes at its present rate needs nothing."""
FALLEN_RATIO = 0.5
"""Without a time scale: one that fell to less than this share of what it was in the window is emptying."""


def draining(queue: Fact | None) -> bool:
    """Whether a queue is short of nothing but time: trend before level."""
    if queue is None or queue.value <= 0:
        return True
    if queue.trend_per_min is not None:
        return queue.value + SOON_MIN * queue.trend_per_min <= 0
    return queue.start is not None and queue.value <= FALLEN_RATIO * queue.start


def standing(replica: Replica) -> float:
    """Requests that wait in the engine and will go on waiting; 0 when the queue is empty, emptying or unknown."""
    waiting = replica.fact(Signal.WAITING)
    return 0.0 if waiting is None or draining(waiting) else waiting.value
