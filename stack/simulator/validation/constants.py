"""The constants of an engine generation as a vector that can be fitted, with what is believed of each beforehand."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from stack.simulator.engine.layout import Floats
from stack.simulator.hardware.overhead import EngineProfile, KernelScale


@dataclass(frozen=True)
class Belief:
    """What is held of a constant before any row is seen; a normal distribution.

    Attributes:
        step: change that tells how the figures depend on it; well above the simulation's own scatter.
        low: physical lower bound.
    """

    mean: float
    deviation: float
    step: float
    low: float


HOST = {
    "step_ms": Belief(0.5, 1.0, 0.5, 0.0),
    "sequence_ms": Belief(0.02, 0.02, 0.01, 0.0),
    "frontend_s": Belief(0.015, 0.015, 0.01, 0.0),
}
"""Host constants of a generation. Means and widths are the order of magnitude of published profiles of vLLM V1."""
KERNELS = {
    "decode": Belief(1.0, 0.05, 0.05, 0.5),
    "prefill": Belief(1.0, 0.15, 0.1, 0.3),
}
"""Kernel scales on one GPU type: versions differ by some percent where memory binds, by more where arithmetic does.
The mean is what a larger generation has for the same family, where there is one."""


@dataclass(frozen=True)
class Layout:
    """Which constants a vector holds, in order: those of the host, then the scales of each kind of kernels.

    Attributes:
        kernels: what is believed of each family on each GPU type.
    """

    kernels: tuple[KernelScale, ...]

    @property
    def beliefs(self) -> tuple[Belief, ...]:
        """One per entry."""
        scales = [
            replace(belief, mean=getattr(scale, name)) for scale in self.kernels for name, belief in KERNELS.items()
        ]
        return (*HOST.values(), *scales)

    def start(self) -> Floats:
        """What is believed beforehand."""
        return np.array([belief.mean for belief in self.beliefs])

    @property
    def deviations(self) -> Floats:
        """How far each entry may well be from that."""
        return np.array([belief.deviation for belief in self.beliefs])

    def profile(self, vector: Floats, async_lag: bool) -> EngineProfile:
        """The generation with these constants."""
        host: dict[str, Any] = {name: float(value) for name, value in zip(HOST, vector, strict=False)}
        scales = np.reshape(vector[len(HOST) :], (len(self.kernels), len(KERNELS)))
        kernels = tuple(
            replace(believed, decode=float(decode), prefill=float(prefill))
            for believed, (decode, prefill) in zip(self.kernels, scales, strict=True)
        )
        return EngineProfile(**host, async_lag=async_lag, kernels=kernels)

    def bounded(self, vector: Floats) -> Floats:
        """The vector with every entry at or above its physical bound."""
        return np.maximum(vector, [belief.low for belief in self.beliefs])
