"""What a forecast, a search and a whole decision cycle cost, in CPU seconds of one core.

Run: PYTHONPATH=. python benchmarks/forecast_speed.py
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice

import numpy as np

from agent.session import Session
from agent.settings import Settings
from agent.wiring import simulated_session
from harness.action import Action
from harness.forecast.forecaster import Forecaster
from harness.forecast.plays import WHOLE
from harness.mode import Mode
from harness.objective import Slo
from stack.layer import Layer
from stack.setting import Value
from stack.simulator.fleet import FleetSpec
from stack.simulator.load.generated import steady
from stack.simulator.load.traffic import Traffic, plain
from stack.simulator.simulation import Simulation
from stack.simulator.stack import SimulatedStack
from stack.snapshot import FLEET, Snapshot

CANDIDATES = 25
FINALISTS = 3


def cpu_s(work: Callable[[], object], times: int = 1) -> float:
    """CPU seconds of one call, the median of `times`."""
    spent = []
    for _ in range(times):
        begin_s = time.process_time()
        work()
        spent.append(time.process_time() - begin_s)
    return float(np.median(spent))


def watched(replicas: int, traffic: Traffic, minutes: int = 6) -> tuple[Forecaster, Snapshot]:
    """A forecaster that has seen some minutes, and the last snapshot."""
    stack = SimulatedStack(Simulation(FleetSpec(replicas=replicas), traffic))
    forecaster = Forecaster(Slo())
    for _ in range(minutes):
        stack.advance(60.0)
        snapshot = stack.reader.snapshot(60.0)
        forecaster.observe(snapshot)
    return forecaster, snapshot


def actions() -> Iterator[Action]:
    """Changes of several settings."""
    for value in (512.0, 768.0, 1024.0, 1536.0, 2048.0, 4096.0):
        yield _action("tokens_per_step", value, 8192.0, Layer.BATCHING)
    for value in (0.6, 0.8, 1.0, 1.5, 2.0):
        yield _action("deadline_shedding_ratio", value, 1e6, Layer.ROUTING)
    for value in (16.0, 32.0, 64.0, 128.0, 256.0):
        yield _action("running_request_cap", value, 1024.0, Layer.BATCHING)
    for value in (4.0, 8.0, 16.0, 64.0):
        yield _action("queue_limit_requests", value, 1e6, Layer.ROUTING)
    for value in ("least_connections", "least_outstanding_tokens", "prefix_aware"):
        yield _action("routing_policy", value, "round_robin", Layer.ROUTING)
    for value in ("class", "short_first", "class_short_first"):
        yield _action("priority_policy", value, "fcfs", Layer.ROUTING)


def _action(setting: str, after: Value, before: Value, layer: Layer) -> Action:
    return Action(setting=setting, target=FLEET, before=before, after=after, cause="", layer=layer, reason="")


def forecasts() -> None:
    """Four replicas at 20 requests per second: 512 prompt and 128 output tokens, then chat-like lengths."""
    rng, seconds = np.random.default_rng(0), 400.0
    times = np.sort(rng.random(int(20 * seconds))) * seconds
    equal = plain(times, np.full(len(times), 512), np.full(len(times), 128))
    for name, traffic in (("512/128", equal), ("chat", steady(20.0, seconds, seed=1))):
        forecaster, snapshot = watched(4, traffic)
        _forecasts(name, forecaster, snapshot)


def _forecasts(name: str, forecaster: Forecaster, snapshot: Snapshot) -> None:
    tried = list(actions())
    two_minutes = replace(WHOLE, horizon_max_s=120.0)
    first = cpu_s(lambda: forecaster.belief(snapshot))
    forecaster._answer(tried[0], snapshot, two_minutes)
    later = cpu_s(lambda: [forecaster._answer(action, snapshot, two_minutes) for action in tried[1:11]]) / 10
    print(f"{name:8s} 2-minute forecast {1e3 * later:.0f} ms, after calibration once a snapshot {1e3 * first:.0f} ms")
    fresh = Forecaster(Slo())
    fresh.observe(snapshot)
    alone = cpu_s(lambda: fresh._answer(tried[0], snapshot, two_minutes))
    print(f"{name:8s} first of a snapshot, with calibration and the futures without a change {1e3 * alone:.0f} ms")
    searched = cpu_s(lambda: search(forecaster, snapshot))
    print(f"{name:8s} search: {CANDIDATES} screened as it was and stressed, {FINALISTS} in full: {searched:.2f} s")


def search(forecaster: Forecaster, snapshot: Snapshot) -> None:
    """As the planner does: screen all, then the best few in full."""
    for action in islice(actions(), CANDIDATES):
        forecaster.screen(action, snapshot)
    for action in islice(actions(), FINALISTS):
        forecaster.forecast(action, snapshot)


def cycles(replicas: int) -> None:
    """Whole cycles of a session with a slow replica, the simulated stack's own time left out."""
    session = simulated_session(
        Settings.load(mode=Mode.SHADOW), faults=("slow_replica@200",), minutes=20.0, load=0.6, replicas=replicas, seed=1
    )
    spent = []
    for _ in range(40):
        spent.append(_cycle(session))
    print(f"{replicas} replicas: a decision cycle takes {np.median(spent):.2f} s, at most {max(spent):.2f} s")


def _cycle(session: Session) -> float:
    clock, slept = session._desk.clock, 0.0
    sleep = clock.sleep

    def timed(seconds: float) -> None:
        nonlocal slept
        slept += cpu_s(lambda: sleep(seconds))

    object.__setattr__(clock, "sleep", timed)
    try:
        return cpu_s(session.cycle) - slept
    finally:
        object.__setattr__(clock, "sleep", sleep)


def main() -> None:
    """Print all figures."""
    forecasts()
    for replicas in (4, 16, 100):
        cycles(replicas)


if __name__ == "__main__":
    main()
