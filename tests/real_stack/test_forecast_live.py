"""The simulator, calibrated on what this stack tells of itself, predicts what changes of the running cap do."""

from itertools import pairwise

import pytest
from live import Live, Say, cap_change
from traffic import users

from harness.action import Forecast
from harness.forecast.forecaster import Forecaster
from harness.objective import Slo
from stack.local.live import LiveStack
from stack.snapshot import FLEET, Signal, Snapshot

pytestmark = pytest.mark.real_stack

WITHIN = 0.5
"""The aim is 0.25, which benchmarks/measured_steps.py measures on captures of a quiet machine; this one may be busy."""
SEEN_S, SETTLE_S, AFTER_S, WINDOW_S = 80.0, 10.0, 30.0, 20.0
CAPS = (3.0, 10.0, 4.0)


def observe(stack: LiveStack, forecaster: Forecaster, seconds: float) -> None:
    for _ in range(int(seconds / 10)):
        stack.clock.sleep(10.0)
        forecaster.observe(stack.reader.snapshot(WINDOW_S))


def figures(snapshot: Snapshot) -> tuple[float, float]:
    """Tokens per second and mean seconds between tokens."""
    tokens, itl_s = snapshot.per_s(Signal.GENERATION_TOKENS), snapshot.value(Signal.ITL_MEAN_S)
    assert tokens
    assert itl_s
    return tokens, itl_s


def set_cap(live: Live, value: float) -> None:
    for name in live.names:
        live.control.write("running_request_cap", name, value)


def test_throughput_and_token_time_after_cap_changes(live: Live, say: Say):
    set_cap(live, CAPS[0])
    forecaster = Forecaster(Slo(ttft_s=1.5, itl_s=0.15))
    with users(live.url, 20, prompt=(64, 128), output=(24, 56)), LiveStack(live.configuration, writes=False) as stack:
        observe(stack, forecaster, SEEN_S)
        for before, after in pairwise(CAPS):
            seen = stack.reader.snapshot(WINDOW_S)
            forecast = forecaster.forecast(cap_change(FLEET, before, after), seen)
            set_cap(live, after)
            stack.clock.sleep(SETTLE_S)
            observe(stack, forecaster, AFTER_S)
            compare(say, forecast, seen, stack.reader.snapshot(AFTER_S))


def compare(say: Say, forecast: Forecast, seen: Snapshot, measured: Snapshot) -> None:
    """The forecast of what follows what was seen, against what was measured then."""
    assert forecast.effects, forecast.note
    tokens_before, itl_before_s = figures(seen)
    tokens, itl_s = figures(measured)
    rate, pace = forecast.effects["finished_per_s"], forecast.effects["itl_mean_s"]
    predicted = tokens_before * rate.after / rate.before, pace.after
    errors = predicted[0] / tokens - 1, predicted[1] / itl_s - 1
    say(
        f"{tokens_before:.0f} to {tokens:.0f} tokens/s, predicted {predicted[0]:.0f} ({errors[0]:+.0%}); "
        f"{1e3 * itl_before_s:.0f} to {1e3 * itl_s:.0f} ms a token, predicted {1e3 * predicted[1]:.0f} "
        f"({errors[1]:+.0%}); {forecast.trust}: {forecast.note}"
    )
    assert max(map(abs, errors)) <= WITHIN
    assert (predicted[0] > tokens_before) == (tokens > tokens_before)
    assert (pace.after > itl_before_s) == (itl_s > itl_before_s)
