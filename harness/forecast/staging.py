"""A simulation in the present state: what runs and waits now is put there, with fast steps, before time counts."""

from dataclasses import dataclass, replace
from math import ceil

import numpy as np

from harness.forecast.belief import Belief
from harness.forecast.requests import PLACING_S, Requests, running_now, traffic_of
from stack.catalogue import UNLIMITED, setting_named
from stack.layer import Layer
from stack.setting import Scope, SettingClass, Value
from stack.simulator.load.traffic import Traffic
from stack.simulator.simulation import Simulation
from stack.snapshot import FLEET

FAST_STEP_S = 0.1
"""Every step while staging, whatever it computes: what a step may hold is set to the most there is."""
STEP_TOKENS = 32768.0
MORE_STEPS = 3
"""Steps beyond those that the prompts need: the first arrivals' step, the scheduling lag, the last token."""


@dataclass(frozen=True)
class Stage:
    """A simulation whose judged time begins now.

    Attributes:
        begin_s: its time; requests that arrive before it were there already.
    """

    simulation: Simulation
    begin_s: float


def staged(belief: Belief, duration_s: float, seed: int) -> Stage:
    """The present state under the settings in force, with arrivals for `duration_s` to come."""
    rng = np.random.default_rng([seed, 1])
    count = len(belief.names)
    running = [running_now(belief, index, rng) for index in range(count)]
    steps_end_s = count * PLACING_S + FAST_STEP_S * max(
        (ceil(_prefill_steps(belief, placed)) + MORE_STEPS) * scale
        for placed, scale in zip(running, belief.step_scale, strict=True)
    )
    running = [
        replace(placed, output=placed.output + _decoded(belief, placed, steps_end_s / FAST_STEP_S / scale))
        for placed, scale in zip(running, belief.step_scale, strict=True)
    ]
    begin_s = steps_end_s + (count + 1) * PLACING_S
    traffic = traffic_of(belief, running, steps_end_s, begin_s, duration_s, seed)
    simulation = _started(belief, traffic, seed)
    _place(simulation, belief, 0.0)
    simulation.advance(steps_end_s)
    simulation = simulation.fork(step_times=belief.fleet.step_times)
    _write(simulation, belief, engines=True)
    _place(simulation, belief, steps_end_s)
    _write(simulation, belief, engines=False)
    simulation.advance(begin_s)
    return Stage(simulation, begin_s)


def _prefill_steps(belief: Belief, placed: Requests) -> float:
    """Steps until the last placed prompt is computed, those that fill the prefix cache included."""
    prefixes, tokens = belief.load.prefixes, float(placed.prompt.sum())
    if prefixes is not None:
        cached = min(tokens, prefixes.share * prefixes.tokens * len(placed.prompt))
        tokens += prefixes.count * prefixes.tokens - cached
    return tokens / STEP_TOKENS


def _decoded(belief: Belief, placed: Requests, steps: float) -> int:
    """Tokens that a placed request makes while staging, to be added to those it still has to make."""
    return max(0, round(steps - _prefill_steps(belief, placed)) - 1)


def _started(belief: Belief, traffic: Traffic, seed: int) -> Simulation:
    """Nothing limits what is put there; every step takes the same time."""
    tables, names = belief.fleet.step_times, belief.fleet.replica_names
    constant_ms, zero = 1e3 * FAST_STEP_S, 0.0
    fast = tables._replace(
        context_ms=np.full_like(tables.context_ms, constant_ms),
        generation_ms=np.full_like(tables.generation_ms, constant_ms),
        decode_attention_ms=np.full_like(tables.decode_attention_ms, zero),
        prefill_attention_ms=np.full_like(tables.prefill_attention_ms, zero),
    )
    settings: dict[str, dict[str, Value]] = {
        "tokens_per_step": dict.fromkeys(names, STEP_TOKENS),
        "running_request_cap": dict.fromkeys(names, setting_named("running_request_cap").high or UNLIMITED),
    }
    return Simulation(
        belief.fleet, traffic, seed=seed, step_times=fast, step_scale=belief.step_scale, settings=settings
    )


def _place(simulation: Simulation, belief: Belief, from_s: float) -> None:
    """Let each replica's requests arrive while no other replica takes any."""
    names = belief.fleet.replica_names
    for name in names:
        simulation.write("routing_weight", name, 0.0)
    for index, name in enumerate(names):
        simulation.write("routing_weight", name, 100.0)
        simulation.advance(from_s + (index + 1) * PLACING_S)
        simulation.write("routing_weight", name, 0.0)


def _write(simulation: Simulation, belief: Belief, *, engines: bool) -> None:
    """Put the settings in force that are held in the engines, or those of the gateway; a dead replica takes none."""
    for name, values in belief.held.items():
        declared = setting_named(name)
        if declared.setting_class is SettingClass.C or (declared.layer is not Layer.ROUTING) is not engines:
            continue
        for target in _targets(belief, declared.scope):
            told = belief.names[int(target)] if target != FLEET else FLEET
            if told in values:
                simulation.write(name, place_of(belief, told), belief.simulated(name, told, values[told]))
    if not engines:
        for name, serving in zip(belief.fleet.replica_names, belief.present.serving, strict=True):
            if not serving:
                simulation.write("replica_state", name, "drain")


def _targets(belief: Belief, scope: Scope) -> tuple[str, ...]:
    return (FLEET,) if scope is Scope.POOL else tuple(str(index) for index in range(len(belief.names)))


def place_of(belief: Belief, target: str) -> str:
    """The simulated target that stands for a target of the stack."""
    return target if target == FLEET else belief.fleet.replica_names[belief.names.index(target)]
