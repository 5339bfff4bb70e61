"""What happened in each engine step: a ring of the last ones."""

from collections import deque
from dataclasses import asdict
from itertools import islice
from typing import Any, NamedTuple

from flashvector_vllm.limits import Limits

CAPACITY = 4096
"""Steps remembered; at 100 steps per second, the last 40 s."""


class Step(NamedTuple):
    """One engine step, as it stood after scheduling.

    Attributes:
        step: number, from 1.
        time_s: seconds since the Unix epoch.
        running: requests running.
        waiting: requests waiting.
        tokens: tokens scheduled.
        preempted: requests pushed back into the queue since the step before.
        held_blocks: KV blocks held out of the pool.
        kv_usage: share of the usable KV blocks in use, 0 to 1.
        limits: the limits in force.
    """

    step: int
    time_s: float
    running: int
    waiting: int
    tokens: int
    preempted: int
    held_blocks: int
    kv_usage: float
    limits: Limits


class StepRecord:
    """The last CAPACITY steps."""

    def __init__(self) -> None:
        self._ring: deque[Step] = deque(maxlen=CAPACITY)

    def add(self, step: Step) -> None:
        """Remember a step; the oldest is forgotten."""
        self._ring.append(step)

    def last(self, count: int) -> list[Step]:
        """The newest steps, oldest first."""
        return list(islice(self._ring, max(0, len(self._ring) - count), None))

    def after(self, step: int, count: int) -> list[Step]:
        """The first steps after one, as far as they are still known."""
        known_from = self._ring[0].step if self._ring else 1
        start = max(0, step + 1 - known_from)
        return list(islice(self._ring, start, start + count))


def rows(steps: list[Step]) -> list[dict[str, Any]]:
    """Steps as plain data."""
    return [{**one._asdict(), "limits": asdict(one.limits)} for one in steps]
