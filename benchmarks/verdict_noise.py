"""The noise of a stack's figures from block to block, which the simulation of verdicts needs to know.

Run: PYTHONPATH=. python benchmarks/verdict_noise.py [FOLDER...]

Without folders, simulated fleets of four replicas in steady traffic are recorded and fitted; with folders, these
incidents of a real stack, all together. Figures are logarithms. Two-way analysis of variance splits them into what all
replicas share (after what the load explains) and what is a replica's own; neighbouring blocks give the correlation,
corrected for the bias of a short series (Kendall 1954). The tails are those beyond the mean.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from agent.simulated_run import SimulatedRun
from harness.objective import Slo
from harness.verification.block import Block, Values, block_of
from harness.verification.comparison import load_features
from harness.verification.metric import METRICS
from stack.errors import UnreachableError
from stack.recorded import replay_of
from stack.simulator.fleet import FleetSpec
from stack.snapshot import FLEET, Signal

Floats: TypeAlias = NDArray[np.float64]

BLOCKS_S = (30.0, 60.0)
SEEDS = 3
HOURS = 1.0
LOADS = (0.6, 0.8)
REPLICAS = 4
PHI_BLOCKS_MIN = 8
"""Blocks in a row below which neighbours say nothing about their correlation."""
FIGURES = {
    "ttft": ("ttft_mean_s", None),
    "itl": ("itl_mean_s", None),
    "e2e per token": ("e2e_per_token_s", None),
    "ttft tail": ("ttft_p99_s", "ttft_mean_s"),
    "ttft P95": ("ttft_p95_s", "ttft_mean_s"),
    "itl tail": ("itl_p99_s", "itl_mean_s"),
}
"""What is fitted: a metric, beyond another one where one is named."""


@dataclass
class Sum:
    """Squares of residuals, their degrees of freedom, and the products of neighbours."""

    squares: float = 0.0
    freedom: float = 0.0
    products: list[float] | None = None

    def add(self, residual: Floats, freedom: float) -> None:
        """Add one recording's residuals, one row a replica."""
        self.squares += float((residual**2).sum())
        self.freedom += freedom
        length = residual.shape[1]
        power = float((residual**2).mean())
        if length >= PHI_BLOCKS_MIN and power > 0:
            raw = float((residual[:, 1:] * residual[:, :-1]).mean()) / power
            self.products = [*(self.products or []), raw + (1 + 3 * max(0.0, raw)) / length]

    @property
    def sd(self) -> float:
        """Standard deviation."""
        return float(np.sqrt(self.squares / self.freedom)) if self.freedom > 0 else float("nan")

    @property
    def phi(self) -> float:
        """Correlation of neighbouring blocks; NaN when no recording is long enough."""
        return float(np.clip(np.mean(self.products), 0, 1)) if self.products else float("nan")


def blocks_of_run(load: float, seed: int, block_s: float) -> list[Block]:
    """A simulated fleet's blocks; the first minutes, in which it fills, are left out."""
    run = SimulatedRun(
        traffic="steady",
        load=load,
        rate_scale=None,
        faults=(),
        fleet=FleetSpec(replicas=REPLICAS),
        minutes=60 * HOURS,
        seed=seed,
        slo=Slo(),
    )
    stack = run.stack()
    stack.advance(300.0)
    found = []
    while stack.simulation.now_s + block_s <= 3600 * HOURS:
        stack.advance(block_s)
        found.append(block_of(stack.reader.snapshot(block_s)))
    return [block for block in found if block is not None]


def blocks_of_folder(folder: Path, block_s: float) -> list[Block]:
    """A recording's blocks, from its start on."""
    replay = replay_of(folder, at_start=True)
    found = []
    while replay.clock.now_s() + block_s <= replay.end_s + 1.0:
        replay.clock.sleep(block_s)
        try:
            found.append(block_of(replay.reader.snapshot(block_s)))
        except UnreachableError:
            found.append(None)
    return [block for block in found if block is not None]


def figures(blocks: Sequence[Block], name: str) -> Floats:
    """Logarithms of one figure, a row a replica and a column a block; blocks in which one is not known are left out."""
    replicas = sorted({replica for block in blocks for replica in block.replicas})
    columns = [[_logarithm(block.of(replica), name) for replica in replicas] for block in blocks]
    return np.array([column for column in columns if None not in column], dtype=float).T


def _logarithm(values: Values, name: str) -> float | None:
    metric, beyond = FIGURES[name]
    value = METRICS[metric].of(values, Slo())
    under = 1.0 if beyond is None else METRICS[beyond].of(values, Slo())
    return log(value / under) if value and under else None


def split(table: Floats, load: Floats | None) -> tuple[Floats, Floats, float, float]:
    """Residuals of the replicas' own and of what they share, each with its degrees of freedom."""
    replicas, count = table.shape
    shared = table.mean(axis=0)
    own = table - shared - (table.mean(axis=1, keepdims=True) - table.mean())
    design = np.column_stack([np.ones(count), *([] if load is None else [load])])
    rest = shared - design @ np.linalg.lstsq(design, shared, rcond=None)[0]
    return own, rest[None, :], float((replicas - 1) * (count - 1)), float(count - design.shape[1])


def loads(blocks: Sequence[Block]) -> Floats | None:
    """What of the load may explain a figure that all replicas share; None for a short recording."""
    rows = [load_features(block.of(FLEET), block.length_s) for block in blocks]
    if len(rows) < PHI_BLOCKS_MIN or any(None in row for row in rows):
        return None
    table = np.array(rows, dtype=float)
    return table - table.mean(axis=0)


def fitted(recordings: Sequence[Sequence[Block]]) -> Iterator[str]:
    """A table row for each figure."""
    for name in FIGURES:
        own, shared, used, replicas = Sum(), Sum(), 0, 1
        for blocks in recordings:
            table = figures(blocks, name)
            if table.ndim != 2 or table.shape[0] < 2 or table.shape[1] < 2:
                continue
            load = loads(blocks) if table.shape[1] == len(blocks) else None
            own_rest, shared_rest, own_free, shared_free = split(table, load)
            own.add(own_rest, own_free)
            shared.add(shared_rest, shared_free)
            used, replicas = used + table.shape[1], table.shape[0]
        drift = max(0.0, shared.sd**2 - own.sd**2 / replicas) ** 0.5
        yield f"| {name} | {own.sd:.3f} | {own.phi:.2f} | {drift:.3f} | {shared.phi:.2f} | {used} |"


def report(title: str, recordings: Sequence[Sequence[Block]]) -> None:
    """Print one table."""
    requests = [
        values.get(Signal.FINISHED, 0.0)
        for blocks in recordings
        for block in blocks
        for values in block.replicas.values()
    ]
    print(f"\n{title}: {len(recordings)} recordings, {np.mean(requests):.0f} requests a block and replica\n")
    print("| figure | own sd | own phi | shared sd | shared phi | blocks |\n|---|---|---|---|---|---|")
    for row in fitted(recordings):
        print(row, flush=True)


def main() -> None:
    """Fit simulated fleets, or the folders that are named."""
    folders = [Path(name) for name in sys.argv[1:]]
    for block_s in BLOCKS_S:
        if folders:
            report(f"recorded, blocks of {block_s:g} s", [blocks_of_folder(folder, block_s) for folder in folders])
            continue
        for load in LOADS:
            report(
                f"simulated at {load:.0%} of capacity, blocks of {block_s:g} s",
                [blocks_of_run(load, seed, block_s) for seed in range(SEEDS)],
            )


if __name__ == "__main__":
    main()
