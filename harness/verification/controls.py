"""Controls: replicas that nobody touched and that carried the same load over the same minutes. Pure."""

from collections.abc import Callable, Iterator, Sequence

from harness.verification.block import Block, Values
from harness.verification.goal import Goal
from harness.verification.metric import offered
from stack.snapshot import FLEET, Signal

CONTROLS_MIN = 2
LOAD_RATIO_MAX = 1.25
"""A replica is a control while neither its requests nor the length of its prompts differ from the changed replica's by
more than this factor, before the change, after it, or from before to after. Load balancing would otherwise hide harm:
with least connections a replica that became 1.3 times slower shows as 1.13 times slower, as its load moves away."""


def controls_of(before: Sequence[Block], after: Sequence[Block], goal: Goal) -> tuple[str, ...]:
    """Names of the replicas that can serve as controls; empty when there are fewer than two."""
    if not goal.per_replica or goal.target == FLEET:
        return ()
    everywhere = set.intersection(*(set(block.replicas) for block in (*before, *after)))
    others = sorted(everywhere - {goal.target}) if goal.target in everywhere else []
    found = tuple(name for name in others if _comparable(before, after, goal.target, name))
    return found if len(found) >= CONTROLS_MIN else ()


def _comparable(before: Sequence[Block], after: Sequence[Block], target: str, other: str) -> bool:
    """Whether `other` answered requests throughout and had the load of `target` on both sides."""
    if not all(block.of(other).get(Signal.FINISHED, 0.0) > 0 for block in (*before, *after)):
        return False
    for figure in (offered, _prompt_tokens_mean):
        was, now = (_ratio(side, target, other, figure) for side in (before, after))
        if was is None or now is None:
            if figure is offered:
                return False
            continue
        if not all(1 / LOAD_RATIO_MAX <= ratio <= LOAD_RATIO_MAX for ratio in (was, now, now / was)):
            return False
    return True


def _ratio(blocks: Sequence[Block], target: str, other: str, figure: Callable[[Values], float | None]) -> float | None:
    """How much more of a figure `target` had than `other`, over the blocks in which both are known."""
    pairs = list(_pairs(blocks, target, other, figure))
    own, theirs = sum(pair[0] for pair in pairs), sum(pair[1] for pair in pairs)
    return own / theirs if own > 0 and theirs > 0 else None


def _pairs(
    blocks: Sequence[Block], target: str, other: str, figure: Callable[[Values], float | None]
) -> Iterator[tuple[float, float]]:
    for block in blocks:
        own, theirs = figure(block.of(target)), figure(block.of(other))
        if own is not None and theirs is not None:
            yield own, theirs


def _prompt_tokens_mean(values: Values) -> float | None:
    return values.get(Signal.PROMPT_TOKENS_MEAN)
