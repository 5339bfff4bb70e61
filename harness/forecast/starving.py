"""Requests that others are preferred to: metrics do not name them, but a queue shows them that most pass by."""

from dataclasses import dataclass
from enum import StrEnum

from stack.catalogue import UNLIMITED
from stack.snapshot import FLEET, Signal, Snapshot

PASSED_BY = 3.0
"""A queue that takes so many times the median time to the first token to serve is passed by."""
SHARE_MAX = 0.5


class Kind(StrEnum):
    """What the requests left behind are taken for."""

    NONE = "none"
    LONG = "long prompts"
    BATCH = "batch"


@dataclass(frozen=True)
class Starving:
    """Requests that are left behind.

    Attributes:
        in_engines: what those waiting in the engines are.
        share: share of the arrivals that joins them.
        batch_at_gateway: whether those waiting at the gateway are batch work above its cap.
        batch_cap: batch requests in each engine then.
        batch_share: share of the arrivals that is batch work.
    """

    in_engines: Kind = Kind.NONE
    share: float = 0.0
    batch_at_gateway: bool = False
    batch_cap: int = 0
    batch_share: float = 0.0


def starving_in(snapshot: Snapshot) -> Starving:
    """What a snapshot shows of them."""
    rate, window_s = snapshot.per_s(Signal.ARRIVED), snapshot.window_s
    if not rate or not window_s:
        return Starving()
    kind, share = _in_engines(snapshot, rate, window_s)
    cap, batch_share = _at_gateway(snapshot, rate, window_s)
    return Starving(kind, share, cap > 0, cap, batch_share)


def _in_engines(snapshot: Snapshot, rate: float, window_s: float) -> tuple[Kind, float]:
    priority = snapshot.settings.get("priority_policy", {}).get(FLEET, "fcfs")
    waiting, done = snapshot.fact(Signal.WAITING), snapshot.per_s(Signal.FINISHED)
    usual_s = snapshot.value(Signal.TTFT_P50_S)
    if priority == "fcfs" or waiting is None or not done or usual_s is None:
        return Kind.NONE, 0.0
    if waiting.value / done <= PASSED_BY * usual_s:
        return Kind.NONE, 0.0
    grown = waiting.value - (waiting.value if waiting.start is None else waiting.start)
    return Kind.BATCH if priority == "class" else Kind.LONG, _share(grown / window_s, rate)


def _at_gateway(snapshot: Snapshot, rate: float, window_s: float) -> tuple[int, float]:
    """The batch cap if it is what the gateway's queue waits for, and the share of arrivals that it concerns.

    Batch work arrives as fast as it is served, one cap's worth in the time of an answer, plus what the queue grows by.
    """
    cap = snapshot.settings.get("batch_in_flight_cap", {}).get(FLEET, UNLIMITED)
    limits = snapshot.settings.get("replica_concurrency_cap", {}).values()
    queue, answer_s = snapshot.fact(Signal.GATEWAY_QUEUE), snapshot.value(Signal.E2E_MEAN_S)
    if isinstance(cap, str) or cap >= UNLIMITED or queue is None or queue.value < 1 or not answer_s:
        return 0, 0.0
    if any(not isinstance(limit, str) and limit < UNLIMITED for limit in limits):
        return 0, 0.0
    grown = queue.value - (queue.value if queue.start is None else queue.start)
    served = float(cap) * len(snapshot.replicas) / answer_s
    return int(cap), _share(served + grown / window_s, rate)


def _share(per_s: float, rate: float) -> float:
    return min(SHARE_MAX, max(0.0, per_s / rate))
