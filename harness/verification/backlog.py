"""Backlog: requests that came before a change still finish after it, and say nothing about it. Pure.

A queue that is falling is not yet the effect of a change, however long the waits that end in it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from harness.verification.block import Block
from stack.snapshot import FLEET, Signal

MATTERS_RATIO = 0.1
"""A queue shorter than this share of the requests finished in a block is no backlog."""
DRAINED_RATIO = 0.2
FALLING_RATIO = 0.8


@dataclass(frozen=True)
class Judgeable:
    """Blocks after a change that show its effect.

    Attributes:
        blocks: those to be judged.
        draining: the queue left over from before is still falling: judging now would judge the past.
        steady: no queue had built up before the change. Otherwise waits were growing, the level before it is not what
            would have gone on without it, and being above that level is no proof of harm.
    """

    blocks: tuple[Block, ...]
    draining: bool = False
    steady: bool = True


def judgeable(before: Sequence[Block], after: Sequence[Block], written_s: float, target: str = FLEET) -> Judgeable:
    """What of `after` shows the effect of a write at `written_s` on a replica or the fleet.

    Blocks whose requests mostly arrived before the write are left out (by their 95th percentile of end-to-end time),
    and so is the time in which a queue left over from before is worked off.
    """
    own = tuple(b for b in after if b.start_s - b.of(target).get(Signal.E2E_P95_S, 0.0) >= written_s)
    if not before or not after:
        return Judgeable(own)
    backlog = max(_queue(before[-1], target), _queue(after[0], target))
    if backlog <= MATTERS_RATIO * after[0].of(target).get(Signal.FINISHED, 0.0):
        return Judgeable(own)
    steady = _queue(before[-1], target) <= MATTERS_RATIO * before[-1].of(target).get(Signal.FINISHED, 0.0)
    drained = next((b for b in after if _queue(b, target) <= DRAINED_RATIO * backlog), None)
    if drained is not None:
        return Judgeable(tuple(b for b in own if b.start_s >= drained.end_s), steady=steady)
    recent = min(_queue(b, target) for b in after[-2:])
    return Judgeable(own, draining=recent < FALLING_RATIO * max(_queue(b, target) for b in after), steady=steady)


def _queue(block: Block, target: str) -> float:
    values = block.of(target)
    return values.get(Signal.WAITING, 0.0) + values.get(Signal.GATEWAY_QUEUE, 0.0)
