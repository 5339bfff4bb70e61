"""How fast the simulator runs: simulated seconds per second of CPU time on a standard load.

The load: replicas of Llama-3.1-8B on H100, Poisson arrivals of 512 prompt and 128 output tokens; the first 256 tokens
of a prompt are one of 64 shared ones. Prefix cache (per KV block), gateway and every metric are on.
"""

import resource
import sys
import time
from dataclasses import replace

import numpy as np

from stack.simulator.engine.kernels import available
from stack.simulator.fleet import FleetSpec
from stack.simulator.load.traffic import Traffic, plain
from stack.simulator.simulation import Simulation

PROMPT_TOKENS, OUTPUT_TOKENS = 512, 128
SHARED_TOKENS, PREFIXES, BLOCK_TOKENS = 256, 64, 16
CASES = {
    "numba_20": (20.0, 4, 600.0, True, True),
    "numba_120": (120.0, 4, 600.0, True, True),
    "numba_64_replicas_800": (800.0, 64, 60.0, True, True),
    "python_20": (20.0, 4, 60.0, False, True),
    "python_20_step_by_step": (20.0, 4, 30.0, False, False),
}
"""Requests per second, replicas, simulated seconds, compiled, equal decode steps taken together."""


def standard_load(rate_per_s: float, duration_s: float) -> Traffic:
    """Requests of the standard load."""
    rng, n = np.random.default_rng(0), int(rate_per_s * duration_s)
    traffic = plain(np.sort(rng.random(n)) * duration_s, np.full(n, PROMPT_TOKENS), np.full(n, OUTPUT_TOKENS))
    chunks, owner = SHARED_TOKENS // BLOCK_TOKENS, rng.integers(PREFIXES, size=n)
    return replace(
        traffic,
        session=owner,
        chain_start=owner * chunks,
        chain_length=np.full(n, chunks),
        chains=np.arange(PREFIXES * chunks),
        chunk_tokens=BLOCK_TOKENS,
    )


def speed(rate_per_s: float, replicas: int, duration_s: float, *, compiled: bool, macro_steps: bool = True) -> float:
    """Simulated seconds per CPU second, the best of three runs; compilation and building the world do not count."""
    traffic, fleet = standard_load(rate_per_s, duration_s), FleetSpec(replicas=replicas)

    def run_s() -> float:
        simulation = Simulation(fleet, traffic, compiled=compiled, macro_steps=macro_steps)
        begin_s = time.process_time()
        simulation.advance(duration_s)
        simulation.readings()
        return time.process_time() - begin_s

    return duration_s / min(run_s() for _ in range(3))


def measured() -> dict[str, object]:
    """Every case this machine can run, and the most memory the process has had, in MB."""
    figures = {
        name: round(speed(rate, replicas, duration_s, compiled=compiled, macro_steps=macro_steps), 1)
        for name, (rate, replicas, duration_s, compiled, macro_steps) in CASES.items()
        if available() or not compiled
    }
    return {"sim_s_per_cpu_s": figures, "rss_mb": round(peak_bytes() / 1e6, 1)}


def peak_bytes() -> float:
    """Largest resident set of this process so far."""
    unit = 1 if sys.platform == "darwin" else 1024
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit)
