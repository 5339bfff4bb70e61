"""Histograms and counters, kept as the run goes and in the engine's own bucket bounds."""

from stack.simulator.engine.layout import World


def observe(world: World, row: int, histogram: int, value: float, times: int) -> None:
    """Count `value` as seen `times` times, in the first bucket whose upper bound is not below it."""
    bounds, index = world.bounds, 0
    while bounds[histogram, index] < value:
        index += 1
    world.bucket[row, histogram, index] += times
    world.total[row, histogram] += value * times
