"""When a forecast is outside its range, and why."""

from collections.abc import Iterator

from harness.action import Action
from harness.forecast.belief import Belief
from harness.forecast.calibration import SCALE_BOUNDS

UNSTEADY_SPREAD = 0.35
"""Standard deviation of the logarithm of the rate from which the load counts as not steady."""
HIT_RATIO_TOLERANCE = 0.15


def doubts_of(belief: Belief, action: Action) -> Iterator[str]:
    """Each reason not to rely on a forecast of `action`, in words."""
    low, high = SCALE_BOUNDS
    beyond = [scale for scale in belief.step_scale if not low < scale < high]
    if beyond:
        yield f"token times are {beyond[0]:.2g} times the tables', outside {low:g} to {high:g}"
    if belief.blind:
        yield f"the engines of {', '.join(belief.blind)} tell nothing new"
    if belief.load.rate_spread > UNSTEADY_SPREAD:
        yield f"the load is not steady: its rate varies by {belief.load.rate_spread:.0%} from minute to minute"
    yield from _reuse(belief)
    if action.setting == "batch_in_flight_cap":
        yield "metrics do not tell batch requests from others"


def _reuse(belief: Belief) -> Iterator[str]:
    prefixes = belief.load.prefixes
    if prefixes is None:
        return
    shown = min(1.0, prefixes.tokens * prefixes.share / belief.load.prompt.mean_tokens)
    if abs(shown - prefixes.hit_ratio) > HIT_RATIO_TOLERANCE:
        yield f"a hit ratio of {prefixes.hit_ratio:.2f} cannot be represented, the nearest is {shown:.2f}"
