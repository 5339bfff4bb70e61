"""Histograms and counters, kept as the run goes and in the engine's own bucket bounds."""

from stack.simulator.engine.layout import World


def bucket_of(world: World, histogram: int, value: float) -> int:
    """Index of the first bucket whose upper bound is not below `value`."""
    bounds = world.bounds
    index = 0
    while bounds[histogram, index] < value:
        index += 1
    return index


def observe(world: World, row: int, histogram: int, value: float, times: int) -> None:
    """Count `value` as seen `times` times."""
    world.bucket[row, histogram, bucket_of(world, histogram, value)] += times
    world.total[row, histogram] += value * times
