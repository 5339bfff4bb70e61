"""A simulated stack for a run: fleet, traffic scaled to the fleet's capacity, faults; and the run's score after it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from harness.objective import Slo
from stack.errors import InputError
from stack.simulator.capacity import capacity_per_s, scaled, scaled_to_load
from stack.simulator.faults.fault import parse_fault
from stack.simulator.fleet import FleetSpec
from stack.simulator.load.files import read_traffic
from stack.simulator.load.generated import ramp, spike, steady
from stack.simulator.load.traffic import Traffic
from stack.simulator.outcomes import Status
from stack.simulator.simulation import Simulation
from stack.simulator.stack import SimulatedStack

USUAL_LOAD = 0.6
SAMPLE_S = 600.0
"""Length of the sample of generated requests whose lengths decide the capacity."""
SHAPES: Mapping[str, Callable[[float, float, int], Traffic]] = {
    "steady": lambda rate, duration_s, seed: steady(rate, duration_s, seed=seed),
    "ramp": lambda rate, duration_s, seed: ramp(0.5 * rate, 1.5 * rate, duration_s, seed=seed),
    "spike": lambda rate, duration_s, seed: spike(rate, 2.0 * rate, duration_s, seed=seed),
}


@dataclass(frozen=True, kw_only=True)
class SimulatedRun:
    """What to simulate.

    Attributes:
        traffic: a file, or the name of a generated shape.
        load: mean load as a share of the fleet's capacity; `rate_scale` multiplies the traffic's own rate instead.
        faults: NAME@SECONDS each.
        minutes: length that is scored.
        tail_s: traffic after it, in which open changes come to their end.
    """

    traffic: str
    load: float | None
    rate_scale: float | None
    faults: tuple[str, ...]
    fleet: FleetSpec
    minutes: float
    seed: int
    slo: Slo
    tail_s: float = 0.0

    def stack(self) -> SimulatedStack:
        """The stack at virtual time zero.

        Raises:
            InputError: a name, number or file is unusable.
        """
        faults = tuple(parse_fault(text) for text in self.faults)
        return SimulatedStack(Simulation(self.fleet, self._requests(), faults=faults, seed=self.seed))

    def score(self, simulation: Simulation) -> dict[str, object]:
        """What the requests that arrived within the scored minutes got; unfinished, lost and shed ones count as bad."""
        outcomes, span_s = simulation.outcomes(), self.minutes * 60
        inside = outcomes.arrival_s < span_s
        ttft_s, e2e_s, status = outcomes.ttft_s[inside], outcomes.e2e_s[inside], outcomes.status[inside]
        tokens = int(outcomes.output_tokens[inside][status == Status.FINISHED].sum())
        return {
            "requests": int(inside.sum()),
            "slo_share": simulation.slo_share(self.slo, 0.0, span_s),
            "p50_ttft_s": _quantile(ttft_s, 0.5),
            "p99_ttft_s": _quantile(ttft_s, 0.99),
            "p99_e2e_s": _quantile(e2e_s, 0.99),
            "shed_share": float((status == Status.SHED).mean()) if len(status) else None,
            "tokens_per_s_per_gpu": tokens / span_s / (self.fleet.replicas * self.fleet.tensor_parallel),
            "gpu_busy": simulation.busy_ratio(),
        }

    def _requests(self) -> Traffic:
        if self.load is not None and self.rate_scale is not None:
            raise InputError("load and rate_scale: expected one of them, found both")
        for name, value in (("load", self.load), ("rate_scale", self.rate_scale)):
            if value is not None and not 0 < value <= 100:
                raise InputError(f"{name}: expected a number above 0 and up to 100, found {value:g}")
        duration_s = self.minutes * 60 + self.tail_s
        if self.traffic in SHAPES:
            return SHAPES[self.traffic](self._rate_per_s(), duration_s, self.seed)
        if not Path(self.traffic).is_file():
            raise InputError(f"traffic: expected a file or one of {', '.join(SHAPES)}, found {self.traffic!r}")
        recorded = read_traffic(Path(self.traffic))
        if self.load is not None:
            return scaled_to_load(
                recorded, self.load, self.fleet, duration_s=duration_s, seed=self.seed, limits=self.slo
            )
        return scaled(recorded, self.rate_scale or 1.0, duration_s=duration_s, seed=self.seed)

    def _rate_per_s(self) -> float:
        sample = steady(10.0, SAMPLE_S, seed=self.seed)
        usual = USUAL_LOAD if self.load is None else self.load
        return usual * capacity_per_s(self.fleet, sample, self.slo) * (self.rate_scale or 1.0)


def _quantile(values: NDArray[np.float64], q: float) -> float | None:
    known = values[~np.isnan(values)]
    return float(np.quantile(known, q)) if len(known) else None
