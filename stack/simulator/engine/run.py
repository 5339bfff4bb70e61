"""The main loop: whole engine steps in the order of the replicas' clocks, with arrivals and timed events in between.

A step cannot be affected by what arrives inside it, so no event queue is needed: the earliest replica with work runs
one step if its clock stands before the next outside event.
"""

from stack.simulator.engine.lanes import gateway_length, pop, push_back, push_front
from stack.simulator.engine.layout import (
    ARRIVED_S,
    AT_GATEWAY,
    ATTENTION_SCALE,
    BATCH_IN_FLIGHT,
    C_ARRIVED,
    C_ERRORS,
    CLOCK_S,
    COMPUTED,
    COUNT,
    DONE_S,
    DOWN,
    DRAINING,
    FIRST_S,
    IN_FLIGHT,
    IS_BATCH,
    LANES,
    LOST,
    MUST_PUMP,
    N_RUNNING,
    N_WAITING,
    NEXT_ARRIVAL,
    NEXT_ATTENTION_SCALE,
    NEXT_SCRAPE_S,
    NEXT_STEP_MS,
    NEXT_TOTAL_BLOCKS,
    NOW_S,
    OUTSTANDING_TOKENS,
    PHASE,
    QUEUE_LIMIT,
    READY,
    READY_AT_S,
    REPLICA,
    RESTART_S,
    RESTARTING,
    RESTARTS,
    SCHEDULED_S,
    SCRAPE_S,
    SEEN_TOKENS,
    SEEN_WAITING,
    SENT_S,
    STATUS,
    STEP_MS,
    TOTAL_BLOCKS,
    WORKER_SCALE,
    Tables,
    World,
)
from stack.simulator.engine.leaving import release_next, shed
from stack.simulator.engine.prefix_cache import clear, release, resize
from stack.simulator.engine.routing import pump, scrape
from stack.simulator.engine.step import step

NEVER = 1e18


def advance(world: World, tables: Tables, until_s: float) -> None:
    """Let virtual time pass up to `until_s`; steps begun before it are completed."""
    clock_s, cursor, replica = world.clock_s, world.cursor, world.replica
    while True:
        if cursor[MUST_PUMP] == 1:
            pump(world, clock_s[NOW_S])
        arrival, ready, waking = next_arrival_s(world), NEVER, -1
        for r in range(replica.shape[0]):
            if replica[r, PHASE] == RESTARTING and world.real[r, READY_AT_S] < ready:
                ready, waking = world.real[r, READY_AT_S], r
        outside = min(arrival, ready, clock_s[NEXT_SCRAPE_S], until_s)
        r = earliest_working(world, outside)
        if r >= 0:
            step(world, tables, r, outside)
            if replica[r, PHASE] == DRAINING and replica[r, IN_FLIGHT] == 0:
                begin_restart(world, r, world.real[r, CLOCK_S])
            clock_s[NOW_S] = max(clock_s[NOW_S], min(outside, world.real[r, CLOCK_S]))
            continue
        clock_s[NOW_S] = outside
        if outside >= until_s:
            return
        if ready <= outside:
            end_restart(world, waking)
        elif clock_s[NEXT_SCRAPE_S] <= outside:
            scrape(world)
            clock_s[NEXT_SCRAPE_S] += world.constant[SCRAPE_S]
        else:
            arrive(world, cursor[NEXT_ARRIVAL], outside)
            cursor[NEXT_ARRIVAL] += 1


def next_arrival_s(world: World) -> float:
    """When the next request comes."""
    q = world.cursor[NEXT_ARRIVAL]
    return float(world.time_s[q, ARRIVED_S]) if q < world.time_s.shape[0] else NEVER


def earliest_working(world: World, before_s: float) -> int:
    """The replica with work whose clock stands earliest and before `before_s`, or -1."""
    replica, real = world.replica, world.real
    best, best_s = -1, before_s
    for r in range(replica.shape[0]):
        if real[r, CLOCK_S] < best_s and (replica[r, N_RUNNING] > 0 or replica[r, N_WAITING] > 0):
            best, best_s = r, real[r, CLOCK_S]
    return best


def arrive(world: World, q: int, t: float) -> None:
    """A request reaches the gateway: refused when the queues are full, sent on, or queued."""
    gateway = world.replica.shape[0]
    world.counter[gateway, C_ARRIVED] += 1
    waiting, ready = float(gateway_length(world)), 0
    for r in range(gateway):
        waiting += world.belief[r, SEEN_WAITING]
        if world.replica[r, PHASE] == READY:
            ready += 1
    if world.request[q, IS_BATCH] == 0 and waiting >= world.pool_setting[QUEUE_LIMIT] * max(1, ready):
        shed(world, q, t)
        return
    world.request[q, STATUS] = AT_GATEWAY
    push_back(world, gateway, q)
    pump(world, t)


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
    world.counter[r, :] = 0
    world.bucket[r, :, :] = 0
    world.total[r, :] = 0.0
    world.belief[r, SEEN_TOKENS] = 0.0
    world.belief[r, SEEN_WAITING] = 0.0
    world.cursor[MUST_PUMP] = 1


def lose(world: World, r: int, t: float) -> None:
    """A replica dies: requests that had tokens are lost, the gateway sends the others elsewhere."""
    replica = world.replica
    replica[r, PHASE] = DOWN
    while replica[r, N_RUNNING] > 0:
        replica[r, N_RUNNING] -= 1
        q = world.running[r, replica[r, N_RUNNING]]
        release(world, r, q)
        world.request[q, COMPUTED] = 0
        strand(world, q, t)
    for lane in range(LANES):
        while world.queue[r, lane, COUNT] > 0:
            strand(world, pop(world, r, lane), t)
    replica[r, IN_FLIGHT] = 0
    replica[r, BATCH_IN_FLIGHT] = 0
    replica[r, OUTSTANDING_TOKENS] = 0
    clear(world, r)
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
