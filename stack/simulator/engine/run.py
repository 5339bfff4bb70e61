"""The main loop: engine steps of all replicas, with arrivals and timed events in between.

A step cannot be affected by what arrives inside it, so no event queue is needed: up to the next outside event each
replica runs by itself, unless the end of a step on one of them may send something to another.
"""

from stack.simulator.engine.lanes import gateway_length, push_back
from stack.simulator.engine.layout import (
    ARRIVED_S,
    AT_GATEWAY,
    C_ARRIVED,
    CHANGING,
    IS_BATCH,
    MUST_PUMP,
    NEVER,
    NEXT_ARRIVAL,
    NEXT_SCRAPE_S,
    NOW_S,
    PHASE,
    PLAN_END_S,
    PLANNED,
    QUEUE_LIMIT,
    READY,
    READY_AT_S,
    RELEASED,
    RESTARTING,
    SCRAPE_S,
    SEEN_WAITING,
    STATUS,
    Tables,
    World,
)
from stack.simulator.engine.leaving import shed
from stack.simulator.engine.lifecycle import count_changing, end_restart, go_down
from stack.simulator.engine.routing import pump, scrape
from stack.simulator.engine.step import commit, plan, settle


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
