"""The forecast sees metrics only; the simulations it is tried on have slow hardware that it is not told of."""

from collections.abc import Iterator

from harness.action import Action
from harness.forecast.forecaster import Forecaster
from harness.objective import Slo
from stack.layer import Layer
from stack.simulator.simulation import Simulation
from stack.simulator.stack import SimulatedStack
from stack.snapshot import Snapshot

SLOW = 2
RATE_PER_S = 45.0


def snapshots(simulation: Simulation, minutes: int) -> Iterator[Snapshot]:
    """A snapshot a minute."""
    stack = SimulatedStack(simulation)
    for _ in range(minutes):
        stack.advance(60.0)
        yield stack.reader.snapshot(60.0)


def weight(target: str, after: float = 50.0) -> Action:
    return Action(
        setting="routing_weight",
        target=target,
        before=100.0,
        after=after,
        cause="slow_replica",
        layer=Layer.ROUTING,
        reason="a slow replica should get less",
    )


def watched(simulation: Simulation, minutes: int = 5) -> tuple[Forecaster, Snapshot]:
    forecaster = Forecaster(Slo())
    for snapshot in snapshots(simulation, minutes):
        forecaster.observe(snapshot)
    return forecaster, snapshot
