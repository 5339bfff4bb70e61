"""Replicas that drain, restart or die, and what becomes of their requests."""

from stack.simulator.engine.block_pool import resize
from stack.simulator.engine.lanes import pop, push_front
from stack.simulator.engine.layout import (
    AT_GATEWAY,
    ATTENTION_SCALE,
    BATCH_IN_FLIGHT,
    C_ERRORS,
    CHANGING,
    CLOCK_S,
    COMPUTED,
    COUNT,
    DONE_S,
    DOWN,
    DRAINING,
    FIRST_S,
    IN_FLIGHT,
    LANES,
    LOST,
    MUST_PUMP,
    N_RUNNING,
    NEXT_ATTENTION_SCALE,
    NEXT_STEP_MS,
    NEXT_TOTAL_BLOCKS,
    OUTSTANDING_TOKENS,
    PHASE,
    PLANNED,
    READY,
    READY_AT_S,
    REPLICA,
    RESTART_S,
    RESTARTING,
    RESTARTS,
    SCHEDULED_S,
    SEEN_TOKENS,
    SEEN_WAITING,
    SENT_S,
    STATUS,
    STEP_MS,
    TOTAL_BLOCKS,
    WORKER_SCALE,
    World,
)
from stack.simulator.engine.leaving import release_next
from stack.simulator.engine.prefix_cache import clear, release
from stack.simulator.engine.step import set_due


def count_changing(world: World) -> None:
    """Replicas that drain for a restart or are restarting."""
    changing = 0
    for r in range(world.replica.shape[0]):
        if world.replica[r, PHASE] == DRAINING or world.replica[r, PHASE] == RESTARTING:
            changing += 1
    world.cursor[CHANGING] = changing


def go_down(world: World) -> bool:
    """Replicas that were to drain and are empty go down; whether there was one."""
    found = False
    for r in range(world.replica.shape[0]):
        if world.replica[r, PHASE] == DRAINING and world.replica[r, IN_FLIGHT] == 0:
            begin_restart(world, r, world.real[r, CLOCK_S])
            found = True
    return found


def begin_restart(world: World, r: int, t: float) -> None:
    """A drained replica goes down to come back with its next profile."""
    world.replica[r, PHASE] = RESTARTING
    world.real[r, READY_AT_S] = t + world.constant[RESTART_S]


def end_restart(world: World, r: int) -> None:
    """The replica is back: empty cache, counters from zero, next profile in force."""
    replica, real = world.replica, world.real
    replica[r, PHASE] = READY
    replica[r, RESTARTS] += 1
    clear(world, r)
    replica[r, TOTAL_BLOCKS] = replica[r, NEXT_TOTAL_BLOCKS]
    real[r, STEP_MS] = real[r, NEXT_STEP_MS]
    real[r, ATTENTION_SCALE] = real[r, NEXT_ATTENTION_SCALE]
    real[r, WORKER_SCALE] = 1.0
    resize(world, r)
    reset_meters(world, r)
    world.belief[r, SEEN_TOKENS] = 0.0
    world.belief[r, SEEN_WAITING] = 0.0
    world.cursor[MUST_PUMP] = 1


def reset_meters(world: World, r: int) -> None:
    """Counters and histograms of a replica start from zero."""
    for column in range(world.counter.shape[1]):
        world.counter[r, column] = 0
    for histogram in range(world.bucket.shape[1]):
        world.total[r, histogram] = 0.0
        for index in range(world.bucket.shape[2]):
            world.bucket[r, histogram, index] = 0


def lose(world: World, r: int, t: float) -> None:
    """A replica dies: requests that had tokens are lost, the gateway sends the others elsewhere."""
    replica = world.replica
    replica[r, PHASE] = DOWN
    replica[r, PLANNED] = 0
    while replica[r, N_RUNNING] > 0:
        replica[r, N_RUNNING] -= 1
        q = world.running[r, replica[r, N_RUNNING]]
        release(world, r, q, False)
        world.request[q, COMPUTED] = 0
        strand(world, q, t)
    for lane in range(LANES):
        while world.queue[r, lane, COUNT] > 0:
            strand(world, pop(world, r, lane), t)
    replica[r, IN_FLIGHT] = 0
    replica[r, BATCH_IN_FLIGHT] = 0
    replica[r, OUTSTANDING_TOKENS] = 0
    clear(world, r)
    set_due(world, r)
    world.cursor[MUST_PUMP] = 1


def strand(world: World, q: int, t: float) -> None:
    """What becomes of one request of a dead replica."""
    if world.time_s[q, FIRST_S] >= 0:
        world.request[q, STATUS] = LOST
        world.time_s[q, DONE_S] = t
        release_next(world, t)
        world.counter[world.replica.shape[0], C_ERRORS] += 1
        return
    world.request[q, STATUS] = AT_GATEWAY
    world.request[q, REPLICA] = -1
    world.time_s[q, SENT_S] = -1.0
    world.time_s[q, SCHEDULED_S] = -1.0
    push_front(world, world.replica.shape[0], q)
