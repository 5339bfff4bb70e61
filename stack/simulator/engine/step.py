"""Engine steps of one replica: planned when they begin, in force when they end.

While nobody finishes, nobody can be admitted and the KV blocks suffice, a batch that only decodes repeats its step.
Such steps are planned together and cut short when something comes in between. Attention time is linear in context
within a table cell, so each of them takes a constant longer than the last.
"""

from math import sqrt

from stack.simulator.engine.layout import (
    ASYNC_LAG,
    BUSY_S,
    CLOCK_S,
    FIRST_STEP_S,
    GROWTH_S,
    N_RUNNING,
    N_WAITING,
    NEVER,
    PLAN_END_S,
    PLANNED,
    PURE,
    STEP_START_S,
    STEPS,
    Tables,
    World,
)
from stack.simulator.engine.pricing import mixed_s, price_decoding
from stack.simulator.engine.progress import advance_decoding, advance_mixed
from stack.simulator.engine.scheduling import grant_decoding, schedule


def plan(world: World, tables: Tables, r: int) -> bool:
    """Begin the replica's next step, or several equal ones; false if it has nothing to run."""
    replica, real = world.replica, world.real
    schedule(world, r, real[r, CLOCK_S])
    if replica[r, N_RUNNING] == 0:
        set_due(world, r)
        return False
    real[r, STEP_START_S] = real[r, CLOCK_S]
    replica[r, PLANNED] = 1
    real[r, GROWTH_S] = 0.0
    if replica[r, PURE] == 1:
        price_decoding(world, tables, r)
    else:
        real[r, FIRST_STEP_S] = mixed_s(world, tables, r)
    real[r, PLAN_END_S] = real[r, CLOCK_S] + steps_s(world, r, replica[r, PLANNED])
    set_due(world, r)
    return True


def set_due(world: World, r: int) -> None:
    """Note when the replica needs attention next."""
    replica, real = world.replica, world.real
    if replica[r, PLANNED] > 0:
        world.due_s[r] = real[r, PLAN_END_S]
    elif replica[r, N_RUNNING] > 0 or replica[r, N_WAITING] > 0:
        world.due_s[r] = real[r, CLOCK_S]
    else:
        world.due_s[r] = NEVER


def steps_s(world: World, r: int, steps: int) -> float:
    """Duration of the first `steps` of the steps under way."""
    real = world.real
    return float(steps * real[r, FIRST_STEP_S] + real[r, GROWTH_S] * (0.5 * steps * (steps - 1)))


def steps_over(world: World, r: int, t: float) -> int:
    """How many of the steps under way are over at time `t`."""
    passed, first, growth = t - world.real[r, CLOCK_S], world.real[r, FIRST_STEP_S], world.real[r, GROWTH_S]
    most = world.replica[r, PLANNED]
    if passed < first:
        return 0
    half = first - 0.5 * growth
    steps = int(passed / first)
    if growth > 0:
        steps = int((sqrt(half * half + 2 * growth * passed) - half) / growth)
    steps = min(most, steps)
    while steps > 0 and steps_s(world, r, steps) > passed:
        steps -= 1
    while steps < most and steps_s(world, r, steps + 1) <= passed:
        steps += 1
    return int(steps)


def cut(world: World, r: int, t: float) -> None:
    """A request has come at `t`: of the steps under way only those that it cannot take part in are run.

    With asynchronous scheduling the step after the one in progress is already scheduled.
    """
    if world.replica[r, PLANNED] > 1:
        steps = steps_over(world, r, t)
        if world.constant[ASYNC_LAG] > 0 and t > world.real[r, CLOCK_S] + steps_s(world, r, steps):
            steps += 1
        keep(world, r, steps + 1)
    set_due(world, r)


def keep(world: World, r: int, steps: int) -> None:
    """No more than the first `steps` of the steps under way are run."""
    if world.replica[r, PLANNED] > steps:
        world.replica[r, PLANNED] = steps
        world.real[r, PLAN_END_S] = world.real[r, CLOCK_S] + steps_s(world, r, steps)


def settle(world: World, r: int, t: float) -> None:
    """Put in force what is over at `t`; at most one step remains under way, and it has its blocks."""
    if world.replica[r, PLANNED] > 1:
        over = steps_over(world, r, t)
        keep(world, r, over + 1)
        over = min(over, world.replica[r, PLANNED] - 1)
        if over > 0:
            commit(world, r, over)
            grant_decoding(world, r)
        set_due(world, r)


def commit(world: World, r: int, steps: int) -> None:
    """The first `steps` of the steps under way are over."""
    replica, real = world.replica, world.real
    begin, first, growth = real[r, CLOCK_S], real[r, FIRST_STEP_S], real[r, GROWTH_S]
    end = begin + steps_s(world, r, steps)
    rest = replica[r, PLANNED] - steps
    if rest == 0:
        end = real[r, PLAN_END_S]
    replica[r, PLANNED] = rest
    replica[r, STEPS] += steps
    real[r, BUSY_S] += end - begin
    real[r, CLOCK_S] = end
    real[r, STEP_START_S] = end if rest > 0 else end - (first + growth * (steps - 1))
    real[r, FIRST_STEP_S] = first + growth * steps
    if replica[r, PURE] == 1:
        advance_decoding(world, r, begin + first, end, steps)
    else:
        advance_mixed(world, r, end)
    set_due(world, r)
