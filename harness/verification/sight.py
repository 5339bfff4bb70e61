"""What was measured before a change and is not any more: no data is not good news. Pure."""

from collections.abc import Sequence

from harness.verification.block import Block
from stack.snapshot import FLEET, Signal

NEEDED = (
    Signal.ARRIVED,
    Signal.FINISHED,
    Signal.ERRORS,
    Signal.SHED,
    Signal.PROMPT_TOKENS_MEAN,
    Signal.OUTPUT_TOKENS_MEAN,
    Signal.TTFT_MEAN_S,
    Signal.ITL_MEAN_S,
    Signal.E2E_MEAN_S,
)
"""What the guards are computed from."""
USUAL_RATIO = 0.8
LOST_RATIO = 0.5


def lost_sight(before: Sequence[Block], after: Sequence[Block], target: str) -> str | None:
    """What most blocks before the change told and most after it do not, in words; None when nothing is lost."""
    lost = [
        f"{signal} of {name}"
        for name in dict.fromkeys((target, FLEET))
        for signal in NEEDED
        if _known_ratio(before, name, signal) >= USUAL_RATIO and _known_ratio(after, name, signal) < LOST_RATIO
    ]
    return f"{', '.join(lost)} was measured before the change and is not any more" if lost else None


def _known_ratio(blocks: Sequence[Block], name: str, signal: Signal) -> float:
    return sum(signal in block.of(name) for block in blocks) / len(blocks) if blocks else 0.0
