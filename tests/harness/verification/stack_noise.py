"""Noise of the figures of one block, as it was measured; the error rates of verdicts are simulated with it."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Noise:
    """First-order autocorrelated noise of a logarithm: correlation of neighbouring blocks, and standard deviation."""

    phi: float
    sd: float


@dataclass(frozen=True, kw_only=True)
class StackNoise:
    """What the figures of one kind of stack do by themselves.

    Attributes:
        source: where the numbers come from.
        block_s: length of the blocks they hold for.
        requests: of one replica in a block, at the usual load.
        fleet: what all replicas share.
        own: of a replica by itself: mean and tail of first tokens and of token times; the tails' beyond the mean's.
    """

    source: str
    block_s: float
    requests: float
    fleet: Noise
    own: Mapping[str, Noise]


ASSUMED = StackNoise(
    source="assumed: at 5 s an own noise of 12 % with phi 0.8 and a drift of 10 % with phi 0.95, averaged over 60 s",
    block_s=60.0,
    requests=150.0,
    fleet=Noise(0.68, 0.091),
    own={
        "ttft": Noise(0.25, 0.084),
        "itl": Noise(0.25, 0.084),
        "ttft_tail": Noise(0.0, 0.10),
        "itl_tail": Noise(0.0, 0.05),
    },
)

SIMULATED = StackNoise(
    source="benchmarks/verdict_noise.py: simulated fleets of four at 80 % of capacity, blocks of 60 s; the larger of "
    "two loads for the tail of first tokens",
    block_s=60.0,
    requests=900.0,
    fleet=Noise(0.0, 0.0),
    own={
        "ttft": Noise(0.01, 0.069),
        "itl": Noise(0.04, 0.059),
        "ttft_tail": Noise(0.03, 0.160),
        "itl_tail": Noise(0.0, 0.073),
    },
)
