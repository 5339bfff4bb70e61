"""The main loop: engine steps of all replicas, with arrivals and timed events in between.

A step cannot be affected by what arrives inside it, so no event queue is needed: up to the next outside event each
replica runs by itself, unless the end of a step on one of them may send something to another.
"""

from stack.simulator.engine.block_pool import resize
from stack.simulator.engine.lanes import gateway_length, pop, push_back, push_front
from stack.simulator.engine.layout import (
    ARRIVED_S,
    AT_GATEWAY,
    ATTENTION_SCALE,
    BATCH_IN_FLIGHT,
    C_ARRIVED,
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
    IS_BATCH,
    LANES,
    LOST,
    MUST_PUMP,
    N_RUNNING,
    NEVER,
    NEXT_ARRIVAL,
    NEXT_ATTENTION_SCALE,
    NEXT_SCRAPE_S,
    NEXT_STEP_MS,
    NEXT_TOTAL_BLOCKS,
    NOW_S,
    OUTSTANDING_TOKENS,
    PHASE,
    PLAN_END_S,
    PLANNED,
    QUEUE_LIMIT,
    READY,
    READY_AT_S,
    RELEASED,
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
from stack.simulator.engine.prefix_cache import clear, release
from stack.simulator.engine.routing import pump, scrape
from stack.simulator.engine.step import commit, plan, set_due, settle


def advance(world: World, tables: Tables, until_s: float) -> None:
    """Let virtual time pass up to `until_s`; steps under way then are in force when they end."""
    clock_s, due_s, replicas = world.clock_s, world.due_s, world.replica.shape[0]
    count_changing(world)
    while True:
        if world.cursor[MUST_PUMP] == 1:
            pump(world, clock_s[NOW_S])
        outside = next_outside_s(world, until_s)
        if coupled(world):
            r = first_to_end(world, tables, outside)
            if r >= 0:
                clock_s[NOW_S] = max(clock_s[NOW_S], world.real[r, PLAN_END_S])
                commit(world, r, world.replica[r, PLANNED])
                continue
            if world.cursor[MUST_PUMP] == 1 or go_down(world):
                continue
        else:
            for r in range(replicas):
                if due_s[r] <= outside:
                    run_alone(world, tables, r, outside)
        clock_s[NOW_S] = outside
        if outside >= until_s:
            for r in range(replicas):
                settle(world, r, until_s)
            return
        happen(world, outside)


def next_outside_s(world: World, until_s: float) -> float:
    """When something next happens outside the engines."""
    at_s = min(next_arrival_s(world), world.clock_s[NEXT_SCRAPE_S], until_s)
    if world.cursor[CHANGING] > 0:
        for r in range(world.replica.shape[0]):
            if world.replica[r, PHASE] == RESTARTING:
                at_s = min(at_s, world.real[r, READY_AT_S])
    return float(at_s)


def count_changing(world: World) -> None:
    """Replicas that drain for a restart or are restarting."""
    changing = 0
    for r in range(world.replica.shape[0]):
        if world.replica[r, PHASE] == DRAINING or world.replica[r, PHASE] == RESTARTING:
            changing += 1
    world.cursor[CHANGING] = changing


def happen(world: World, now_s: float) -> None:
    """One outside event that is due: a restart ends, the gateway reads the engines, or a request arrives."""
    cursor = world.cursor
    if cursor[CHANGING] > 0:
        for r in range(world.replica.shape[0]):
            if world.replica[r, PHASE] == RESTARTING and world.real[r, READY_AT_S] <= now_s:
                end_restart(world, r)
                count_changing(world)
                return
    if world.clock_s[NEXT_SCRAPE_S] <= now_s:
        scrape(world)
        world.clock_s[NEXT_SCRAPE_S] += world.constant[SCRAPE_S]
        return
    arrive(world, cursor[NEXT_ARRIVAL], now_s)
    cursor[NEXT_ARRIVAL] += 1


def coupled(world: World) -> bool:
    """Whether the end of a step on one replica may send something to another before the next outside event."""
    unsettled = world.cursor[RELEASED] < world.time_s.shape[0]
    return bool(unsettled or world.cursor[CHANGING] > 0 or gateway_length(world) > 0)


def under_way(world: World, tables: Tables, r: int, before_s: float) -> bool:
    """Whether the replica has steps under way, begun now if need be; none begins at `before_s` or later."""
    if world.replica[r, PLANNED] > 0:
        return True
    return world.due_s[r] < before_s and plan(world, tables, r)


def run_alone(world: World, tables: Tables, r: int, until_s: float) -> None:
    """Run the replica's steps that end by `until_s` and begin the next one."""
    while under_way(world, tables, r, until_s) and world.real[r, PLAN_END_S] <= until_s:
        commit(world, r, world.replica[r, PLANNED])


def first_to_end(world: World, tables: Tables, until_s: float) -> int:
    """The replica whose steps under way end first and by `until_s`, or -1."""
    best, due_s = -1, world.due_s
    for r in range(world.replica.shape[0]):
        if due_s[r] <= until_s and under_way(world, tables, r, until_s) and due_s[r] <= until_s:
            until_s, best = due_s[r], r
    return best


def go_down(world: World) -> bool:
    """Replicas that were to drain and are empty go down; whether there was one."""
    found = False
    for r in range(world.replica.shape[0]):
        if world.replica[r, PHASE] == DRAINING and world.replica[r, IN_FLIGHT] == 0:
            begin_restart(world, r, world.real[r, CLOCK_S])
            found = True
    return found


def next_arrival_s(world: World) -> float:
    """When the next request comes."""
    q = world.cursor[NEXT_ARRIVAL]
    return float(world.time_s[q, ARRIVED_S]) if q < world.time_s.shape[0] else NEVER


def arrive(world: World, q: int, t: float) -> None:
    """A request reaches the gateway: refused when the queues are full, sent on, or queued."""
    gateway, limited = world.replica.shape[0], world.pool_setting[QUEUE_LIMIT] < world.time_s.shape[0]
    world.counter[gateway, C_ARRIVED] += 1
    if limited and world.request[q, IS_BATCH] == 0 and queues_full(world):
        shed(world, q, t)
        return
    world.request[q, STATUS] = AT_GATEWAY
    push_back(world, gateway, q)
    pump(world, t)


def queues_full(world: World) -> bool:
    """Whether the requests waiting, as far as the gateway knows, reach its limit per replica."""
    waiting, ready = float(gateway_length(world)), 0
    for r in range(world.replica.shape[0]):
        waiting += world.belief[r, SEEN_WAITING]
        if world.replica[r, PHASE] == READY:
            ready += 1
    return bool(waiting >= world.pool_setting[QUEUE_LIMIT] * max(1, ready))


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
