"""The simulator, calibrated on what this stack tells of itself, predicts what a change of the running cap does."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
from live import Live, Say, cap_change
from traffic import users

from harness.forecast.forecaster import Forecaster
from harness.objective import Slo
from stack.local.live import LiveStack
from stack.snapshot import FLEET, Signal, Snapshot

pytestmark = pytest.mark.real_stack

WITHIN = 0.5
"""The aim is 0.25, which benchmarks/measured_steps.py measures on captures of a quiet machine; this one may be busy."""
SEEN_S, AFTER_S, SETTLE_S, WINDOW_S = 80.0, 30.0, 10.0, 20.0


@contextmanager
def looking(live: Live, count: int) -> Iterator[tuple[LiveStack, Forecaster]]:
    """`count` users, and a forecaster that has seen some time of them."""
    with ExitStack() as ends:
        ends.enter_context(users(live.url, count, prompt=(64, 128), output=(24, 56)))
        stack = ends.enter_context(LiveStack(live.configuration, writes=False))
        forecaster = Forecaster(Slo(ttft_s=1.5, itl_s=0.15))
        for _ in range(int(SEEN_S / 10)):
            stack.clock.sleep(10.0)
            forecaster.observe(stack.reader.snapshot(WINDOW_S))
        yield stack, forecaster


def figures(snapshot: Snapshot) -> tuple[float, float]:
    """Tokens per second and mean seconds between tokens."""
    tokens, itl_s = snapshot.per_s(Signal.GENERATION_TOKENS), snapshot.value(Signal.ITL_MEAN_S)
    assert tokens
    assert itl_s
    return tokens, itl_s


@pytest.mark.parametrize(("before", "after", "count"), [(3.0, 10.0, 20), (12.0, 4.0, 20)])
def test_throughput_and_token_time_after_a_cap_change(live: Live, say: Say, before: float, after: float, count: int):
    for name in live.names:
        live.control.write("running_request_cap", name, before)
    with looking(live, count) as (stack, forecaster):
        seen = stack.reader.snapshot(WINDOW_S)
        forecast = forecaster.forecast(cap_change(FLEET, before, after), seen)
        assert forecast.effects, forecast.note
        for name in live.names:
            live.control.write("running_request_cap", name, after)
        stack.clock.sleep(SETTLE_S + AFTER_S)
        measured = stack.reader.snapshot(AFTER_S)
    tokens_before, itl_before_s = figures(seen)
    tokens, itl_s = figures(measured)
    rate, pace = forecast.effects["finished_per_s"], forecast.effects["itl_mean_s"]
    predicted = tokens_before * rate.after / rate.before, pace.after
    errors = predicted[0] / tokens - 1, predicted[1] / itl_s - 1
    say(
        f"cap {before:g} to {after:g}: {tokens_before:.0f} to {tokens:.0f} tokens/s, predicted {predicted[0]:.0f} "
        f"({errors[0]:+.0%}); {1e3 * itl_before_s:.0f} to {1e3 * itl_s:.0f} ms a token, predicted "
        f"{1e3 * predicted[1]:.0f} ({errors[1]:+.0%}); {forecast.trust}: {forecast.note}"
    )
    assert max(map(abs, errors)) <= WITHIN
    assert (predicted[0] > tokens_before) == (tokens > tokens_before)
    assert (pace.after > itl_before_s) == (itl_s > itl_before_s)
