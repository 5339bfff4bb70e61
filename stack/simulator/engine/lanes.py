"""Waiting requests: four linked lists per replica and gateway, so that a priority policy is a choice of lane."""

from stack.simulator.engine.layout import (
    ARRIVED_S,
    BY_CLASS,
    COUNT,
    FCFS,
    HEAD,
    IS_BATCH,
    LANES,
    N_WAITING,
    NEXT,
    PROMPT,
    SENT_S,
    SHORT_FIRST,
    SHORT_TOKENS,
    TAIL,
    World,
)


def lane_of(world: World, q: int) -> int:
    """Batch requests and long prompts have their own lanes."""
    lane = 2 * world.request[q, IS_BATCH]
    if world.request[q, PROMPT] > world.constant[SHORT_TOKENS]:
        lane += 1
    return int(lane)


def push_back(world: World, row: int, q: int) -> None:
    """Queue behind the others of its lane."""
    queue, request = world.queue, world.request
    lane = lane_of(world, q)
    request[q, NEXT] = -1
    if queue[row, lane, COUNT] == 0:
        queue[row, lane, HEAD] = q
    else:
        request[queue[row, lane, TAIL], NEXT] = q
    queue[row, lane, TAIL] = q
    queue[row, lane, COUNT] += 1
    if row < world.replica.shape[0]:
        world.replica[row, N_WAITING] += 1


def push_front(world: World, row: int, q: int) -> None:
    """Queue before the others of its lane."""
    queue, request = world.queue, world.request
    lane = lane_of(world, q)
    if queue[row, lane, COUNT] == 0:
        queue[row, lane, TAIL] = q
        request[q, NEXT] = -1
    else:
        request[q, NEXT] = queue[row, lane, HEAD]
    queue[row, lane, HEAD] = q
    queue[row, lane, COUNT] += 1
    if row < world.replica.shape[0]:
        world.replica[row, N_WAITING] += 1


def pop(world: World, row: int, lane: int) -> int:
    """Take the first of a lane that is not empty."""
    queue = world.queue
    q = queue[row, lane, HEAD]
    queue[row, lane, HEAD] = world.request[q, NEXT]
    queue[row, lane, COUNT] -= 1
    if row < world.replica.shape[0]:
        world.replica[row, N_WAITING] -= 1
    return int(q)


def first_lane(world: World, row: int, policy: int, lanes: int) -> int:
    """The lane to serve next among the first `lanes`, or -1 when all are empty: earliest of the best rank."""
    queue, time_s = world.queue, world.time_s
    since = SENT_S if row < world.replica.shape[0] else ARRIVED_S
    best, best_rank, best_arrival, best_q = -1, 0, 0.0, 0
    for lane in range(lanes):
        if queue[row, lane, COUNT] == 0:
            continue
        rank = 0
        if policy == SHORT_FIRST:
            rank = lane % 2
        elif policy != FCFS:
            rank = lane // 2 if policy == BY_CLASS else lane
        q = queue[row, lane, HEAD]
        arrival = time_s[q, since]
        earlier = arrival < best_arrival or (arrival == best_arrival and q < best_q)
        if best < 0 or rank < best_rank or (rank == best_rank and earlier):
            best, best_rank, best_arrival, best_q = lane, rank, arrival, q
    return best


def length(world: World, row: int, lanes: int) -> int:
    """Requests waiting in the first `lanes` lanes."""
    n = 0
    for lane in range(lanes):
        n += world.queue[row, lane, COUNT]
    return n


def gateway_length(world: World) -> int:
    """Requests waiting at the gateway."""
    return length(world, world.replica.shape[0], LANES)
