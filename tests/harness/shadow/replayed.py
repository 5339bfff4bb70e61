"""Windows of a simulated fleet after a moment at which something was decided."""

from dataclasses import dataclass

from harness.action import Action
from harness.objective import Slo
from harness.shadow.choice import Choice
from harness.shadow.judge import judged
from harness.shadow.score import Score
from stack.catalogue import setting_named
from stack.simulator.fleet import FleetSpec
from stack.simulator.load.generated import steady
from stack.simulator.simulation import Simulation
from stack.simulator.stack import SimulatedStack
from stack.snapshot import FLEET, Snapshot

RATE_PER_S = 16.0
WINDOW_S = 120.0
CAP, STARVED = "running_request_cap", 4.0


def change(setting: str, before: float | str, after: float | str, target: str = FLEET) -> Action:
    layer = setting_named(setting).layer
    return Action(setting=setting, target=target, before=before, after=after, cause="test", layer=layer, reason="test")


@dataclass
class Moment:
    """What was seen when it was decided, and the stack as it goes on from there."""

    then: Snapshot
    simulation: Simulation

    def windows(self, by_hand: Action | None = None) -> list[Snapshot]:
        """Two minutes from the moment on, with what somebody changes at their beginning."""
        simulation = self.simulation.fork()
        for target in () if by_hand is None else simulation.fleet.replica_names:
            simulation.write(by_hand.setting, target, by_hand.after)
        stack, seen = SimulatedStack(simulation), []
        stack.reader.snapshot(60.0)
        for _ in range(2):
            stack.advance(60.0)
            seen.append(stack.reader.snapshot(60.0))
        return seen

    def choice(self, action: Action | None, *legal: Action) -> Choice:
        assert self.then.time_s is not None
        return Choice(
            action=action,
            legal=legal,
            snapshot=self.then,
            decided_s=self.then.time_s,
            window_s=WINDOW_S,
            planner="search",
        )

    def judged(self, action: Action | None, *legal: Action, by_hand: Action | None = None) -> Score:
        return judged(self.choice(action, *legal), self.windows(by_hand), Slo())


def moment(*, starved: bool) -> Moment:
    """Two replicas after four minutes, in the last two of which they may run too few requests at once, or enough."""
    simulation = Simulation(FleetSpec(replicas=2), steady(RATE_PER_S, 600, seed=4), seed=4)
    stack = SimulatedStack(simulation)
    stack.advance(120.0)
    for name in simulation.fleet.replica_names if starved else ():
        simulation.write(CAP, name, STARVED)
    for _ in range(2):
        stack.advance(60.0)
        then = stack.reader.snapshot(60.0)
    return Moment(then, simulation)
