"""Playing the next minutes through in the simulator, without and with a change, under several draws of the belief."""

from dataclasses import dataclass, replace
from functools import cached_property
from statistics import NormalDist

import numpy as np

from harness.forecast.belief import Belief
from harness.forecast.figures import Figures, figures_of
from harness.forecast.staging import Stage, place_of, staged
from stack.catalogue import setting_named
from stack.setting import Scope, Value
from stack.simulator.simulation import Simulation
from stack.snapshot import FLEET

DRAIN_S = 30.0
"""Time after the last arrival in which started requests may still finish."""
KV_LOOKS = 4
"""How often KV use is looked at within the horizon."""


Pair = tuple[Figures, Figures]
"""Figures without and with a change."""


@dataclass(frozen=True)
class Change:
    """What is tried."""

    setting: str
    target: str
    value: Value


class Rehearsal:
    """The next minutes of one draw: its rate, step times, arrivals and lengths are fixed, so changes compare."""

    def __init__(self, belief: Belief, horizon_s: float, seed: int) -> None:
        self._belief, self._horizon_s = belief, horizon_s
        self._seed = seed

    @cached_property
    def as_is(self) -> Figures:
        """Figures without a change."""
        return self._played(self._stage.simulation.fork())

    def changed(self, change: Change) -> Figures:
        """Figures with the change made at the beginning."""
        simulation = self._stage.simulation.fork()
        for target in _targets(change, self._belief):
            value = self._belief.simulated(change.setting, target, change.value)
            simulation.write(change.setting, place_of(self._belief, target), value)
        return self._played(simulation)

    @cached_property
    def _stage(self) -> Stage:
        return staged(self._belief, self._horizon_s, self._seed)

    def _played(self, simulation: Simulation) -> Figures:
        begin_s = self._stage.begin_s
        end_s = begin_s + self._horizon_s
        usage = []
        for look in range(1, KV_LOOKS + 1):
            simulation.advance(begin_s + look * self._horizon_s / KV_LOOKS)
            usage.append(simulation.kv_usage_ratio())
        simulation.advance(end_s + DRAIN_S)
        outcomes = simulation.outcomes()
        if self._belief.held_back:
            outcomes = replace(outcomes, ttft_s=outcomes.e2e_s)
        figures = figures_of(outcomes, self._belief.slo, begin_s, end_s, end_s + DRAIN_S)
        return {**figures, "kv_usage_p95_ratio": float(np.quantile(usage, 0.95))}


def rehearsals(belief: Belief, *, horizon_s: float, draws: int, seed: int) -> tuple[Rehearsal, ...]:
    """Draws from what is uncertain: arrivals and lengths, the rate to come, the common error of the step times.

    Rate and step times take evenly spread quantiles of their distributions, in an order of their own each.
    """
    normal = NormalDist()
    scores = [normal.inv_cdf((place + 0.5) / draws) for place in range(draws)]
    rng = np.random.default_rng([seed, draws])
    rates, scales = rng.permutation(draws), rng.permutation(draws)
    return tuple(
        Rehearsal(_drawn(belief, scores[rates[draw]], scores[scales[draw]]), horizon_s, seed + draw)
        for draw in range(draws)
    )


def _drawn(belief: Belief, rate_score: float, scale_score: float) -> Belief:
    load, slower = belief.load, float(np.exp(belief.scale_spread * scale_score))
    rate = load.arrivals_per_s * float(np.exp(load.rate_spread * rate_score))
    return replace(
        belief,
        load=replace(load, arrivals_per_s=rate),
        step_scale=tuple(scale * slower for scale in belief.step_scale),
    )


def _targets(change: Change, belief: Belief) -> tuple[str, ...]:
    """A per-replica setting of the fleet is written to every replica that answers, as execution does."""
    if change.target == FLEET and setting_named(change.setting).scope is Scope.REPLICA:
        return belief.names
    return (change.target,)
