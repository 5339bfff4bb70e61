"""When a forecast is outside its range, and why."""

from collections.abc import Iterator

from harness.action import Action
from harness.forecast.belief import Belief
from harness.forecast.calibration import SCALE_BOUNDS
from stack.snapshot import FLEET

UNSTEADY_SPREAD = 0.35
"""Standard deviation of the logarithm of the rate from which the load counts as not steady."""
HIT_RATIO_TOLERANCE = 0.15
STEP_ERROR_MAX = 0.25
"""Error of an engine's own step times from which nothing is built on them."""
STALLED = 1.5
"""Mean over usual step time from which stalls, and not what a step computes, decide."""


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
    yield from _beyond_measured(belief, action)
    if action.setting == "batch_in_flight_cap":
        yield "metrics do not tell batch requests from others"


def assumed(belief: Belief, *, doubted: bool) -> Iterator[str]:
    """What a forecast rests on, in words; beside doubts only what matters where step times are an engine's own."""
    if not doubted:
        yield f"calibrated on {belief.load.arrivals_per_s:.1f} req/s as measured"
    clients = belief.load.clients.count
    if belief.fleet.measured is not None and clients:
        yield f"assumes {clients} clients who each wait for an answer before they ask again"
    elif belief.fleet.measured is not None:
        yield "assumes that requests come as they did, whatever is answered"


def _reuse(belief: Belief) -> Iterator[str]:
    prefixes = belief.load.prefixes
    if prefixes is None:
        return
    shown = min(1.0, prefixes.tokens * prefixes.share / belief.load.prompt.mean_tokens)
    if abs(shown - prefixes.hit_ratio) > HIT_RATIO_TOLERANCE:
        yield f"a hit ratio of {prefixes.hit_ratio:.2f} cannot be represented, the nearest is {shown:.2f}"


def _beyond_measured(belief: Belief, action: Action) -> Iterator[str]:
    """Where step times are an engine's own: those that fit badly, and batches it was not seen with."""
    measured = belief.fleet.measured
    if measured is None:
        return
    if measured.error_ratio > STEP_ERROR_MAX:
        yield f"the engines' own step times are known to {measured.error_ratio:.0%} only"
    fastest = min(belief.step_scale)
    if fastest > STALLED:
        yield f"token times are {fastest:.1f} times the engines' own steps: something else takes their time"
    if belief.load.clients.unsure:
        yield f"it is not sure whether {belief.load.clients.unsure} clients wait for their answers"
    batch = max(_batch(belief, action, index) for index in range(len(belief.names)))
    if batch > measured.batch_max:
        yield (
            f"up to {batch:.0f} requests may run in an engine then, and its step times were measured with "
            f"{measured.batch_max:.0f} at most"
        )


def _batch(belief: Belief, action: Action, index: int) -> float:
    """How many requests a replica may run after the change: no more than there are, and than its cap."""
    present, name = belief.present, belief.names[index]
    here = present.running[index] + present.waiting[index] + present.at_gateway / len(belief.names)
    cap = belief.value("running_request_cap", index, here)
    if action.setting == "running_request_cap" and action.target in (name, FLEET) and not isinstance(action.after, str):
        cap = float(belief.simulated(action.setting, name, action.after))
    return min(here, cap)
