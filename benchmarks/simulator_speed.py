"""Speed of the simulator: simulated seconds per CPU second, four replicas, 512 prompt and 128 output tokens.

Run: python benchmarks/simulator_speed.py
"""

import time

import numpy as np

from stack.simulator.engine.kernels import available
from stack.simulator.fleet import FleetSpec
from stack.simulator.simulation import Simulation
from stack.simulator.traffic import Traffic, plain

PROMPT_TOKENS, OUTPUT_TOKENS = 512, 128
SIMULATED_S = 600.0


def poisson(rate_per_s: float, duration_s: float) -> Traffic:
    """Poisson arrivals of equal requests."""
    rng = np.random.default_rng(0)
    n = int(rate_per_s * duration_s)
    return plain(np.sort(rng.random(n)) * duration_s, np.full(n, PROMPT_TOKENS), np.full(n, OUTPUT_TOKENS))


def speed(rate_per_s: float, *, compiled: bool, duration_s: float = SIMULATED_S) -> float:
    """Simulated seconds per CPU second, best of three, without compilation and building the world."""
    traffic = poisson(rate_per_s, duration_s)
    best_s = np.inf
    for _ in range(3 if compiled else 1):
        simulation = Simulation(FleetSpec(), traffic, compiled=compiled)
        begin_s = time.process_time()
        simulation.advance(duration_s)
        best_s = min(best_s, time.process_time() - begin_s)
    return float(duration_s / best_s)


def main() -> None:
    """Print one line per case."""
    for rate_per_s in (20.0, 120.0):
        if available():
            print(f"numba  {rate_per_s:5.0f} req/s: {speed(rate_per_s, compiled=True):8.0f} simulated s per CPU s")
        short_s = 120.0 if rate_per_s < 100 else 20.0
        figure = speed(rate_per_s, compiled=False, duration_s=short_s)
        print(f"python {rate_per_s:5.0f} req/s: {figure:8.0f} simulated s per CPU s")


if __name__ == "__main__":
    main()
