"""A queue that empties by itself is no reason to act."""

from harness.action import Action
from stack.setting import Effect
from stack.snapshot import FLEET, Signal, Snapshot

SOON_MIN = 1.0
"""A queue that will be empty within this many minutes at its present rate needs no help."""
_QUEUES = (Signal.WAITING, Signal.GATEWAY_QUEUE)
_FOR_QUEUES = frozenset({Effect.RELIEVES_QUEUE, Effect.SHEDS_LOAD})


def needless(action: Action, snapshot: Snapshot) -> bool:
    """Whether `action` is meant for a queue that is about to be empty anyway."""
    return bool(action.certain_effects & _FOR_QUEUES) and draining(snapshot, action.target)


def draining(snapshot: Snapshot, target: str = FLEET) -> bool:
    """Whether requests wait on `target` and will have gone soon at the present trend; False when that is unknown."""
    facts = [fact for queue in _QUEUES if (fact := snapshot.fact(queue, target)) is not None]
    waiting = sum(fact.value for fact in facts)
    trends = [fact.trend_per_min for fact in facts if fact.trend_per_min is not None]
    return bool(trends) and waiting > 0 and waiting + SOON_MIN * sum(trends) <= 0
