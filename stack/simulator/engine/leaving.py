"""How a request leaves a replica: finished, shed, rejected or preempted."""

from stack.simulator.engine.lanes import push_front
from stack.simulator.engine.layout import (
    ARRIVED_S,
    BATCH_IN_FLIGHT,
    BUFFERED,
    C_ABORTED,
    C_ERRORS,
    C_FINISHED,
    C_PREEMPTIONS,
    C_SHED,
    COMPUTED,
    DONE_S,
    FINISHED,
    FIRST_S,
    FRONTEND_S,
    H_DECODE,
    H_E2E,
    H_OUTPUT,
    H_PREFILL,
    H_PROMPT,
    H_QUEUE,
    H_TTFT,
    IN_FLIGHT,
    IS_BATCH,
    LAST_S,
    MUST_PUMP,
    NEXT_ARRIVAL,
    OUTPUT,
    OUTSTANDING_TOKENS,
    PROMPT,
    REJECTED,
    RELEASED,
    SCHEDULED_S,
    SEEN_S,
    SENT_S,
    SENT_TOKENS,
    SHED,
    STATUS,
    WAITING,
    World,
)
from stack.simulator.engine.meter import observe
from stack.simulator.engine.prefix_cache import release


def leave(world: World, r: int, q: int) -> None:
    """The gateway has one request less at the replica and may send the next."""
    world.replica[r, IN_FLIGHT] -= 1
    if world.request[q, IS_BATCH] == 1:
        world.replica[r, BATCH_IN_FLIGHT] -= 1
    if world.time_s[q, FIRST_S] < 0:
        world.replica[r, OUTSTANDING_TOKENS] -= world.request[q, SENT_TOKENS]
    world.cursor[MUST_PUMP] = 1


def release_next(world: World, t: float) -> None:
    """In a closed loop, the user whose request has ended sends the next one after a pause; arrivals stay in order."""
    cursor, time_s = world.cursor, world.time_s
    q = cursor[RELEASED]
    if q >= time_s.shape[0]:
        return
    cursor[RELEASED] += 1
    arrival_s = t + world.think_s[q]
    while q > cursor[NEXT_ARRIVAL] and time_s[q - 1, ARRIVED_S] > arrival_s:
        time_s[q, ARRIVED_S] = time_s[q - 1, ARRIVED_S]
        q -= 1
    time_s[q, ARRIVED_S] = arrival_s


def first_token(world: World, r: int, q: int, t: float) -> None:
    """The engine has produced the first token; a buffering proxy keeps it until the answer is whole."""
    time_s, gateway = world.time_s, world.replica.shape[0]
    shown = t + world.constant[FRONTEND_S]
    time_s[q, FIRST_S] = shown
    time_s[q, LAST_S] = t
    world.replica[r, OUTSTANDING_TOKENS] -= world.request[q, SENT_TOKENS]
    observe(world, r, H_TTFT, shown - time_s[q, SENT_S], 1)
    if world.constant[BUFFERED] == 0:
        time_s[q, SEEN_S] = shown
        observe(world, gateway, H_TTFT, shown - time_s[q, ARRIVED_S], 1)


def finish(world: World, r: int, q: int, t: float) -> None:
    """The last token is out."""
    request, time_s, gateway = world.request, world.time_s, world.replica.shape[0]
    shown = t + world.constant[FRONTEND_S]
    time_s[q, DONE_S] = shown
    request[q, STATUS] = FINISHED
    if time_s[q, SEEN_S] < 0:
        time_s[q, SEEN_S] = shown
        observe(world, gateway, H_TTFT, shown - time_s[q, ARRIVED_S], 1)
    release(world, r, q, False)
    leave(world, r, q)
    release_next(world, shown)
    world.counter[r, C_FINISHED] += 1
    world.counter[gateway, C_FINISHED] += 1
    observe(world, r, H_E2E, shown - time_s[q, SENT_S], 1)
    observe(world, r, H_QUEUE, time_s[q, SCHEDULED_S] - time_s[q, SENT_S], 1)
    observe(world, r, H_PREFILL, time_s[q, FIRST_S] - time_s[q, SCHEDULED_S], 1)
    observe(world, r, H_DECODE, shown - time_s[q, FIRST_S], 1)
    observe(world, r, H_PROMPT, float(request[q, PROMPT]), 1)
    observe(world, r, H_OUTPUT, float(request[q, OUTPUT]), 1)
    observe(world, gateway, H_E2E, shown - time_s[q, ARRIVED_S], 1)
    observe(world, gateway, H_QUEUE, time_s[q, SENT_S] - time_s[q, ARRIVED_S], 1)


def shed(world: World, q: int, t: float) -> None:
    """The gateway refuses a request."""
    world.request[q, STATUS] = SHED
    world.time_s[q, DONE_S] = t
    release_next(world, t)
    world.counter[world.replica.shape[0], C_SHED] += 1


def abort(world: World, r: int, q: int, t: float) -> None:
    """The gateway gives up on a request that waits in a replica's queue."""
    leave(world, r, q)
    world.counter[r, C_ABORTED] += 1
    shed(world, q, t)


def reject(world: World, r: int, q: int, t: float) -> None:
    """A request can never fit into the replica's KV blocks."""
    leave(world, r, q)
    world.request[q, STATUS] = REJECTED
    world.time_s[q, DONE_S] = t
    release_next(world, t)
    world.counter[r, C_ABORTED] += 1
    world.counter[world.replica.shape[0], C_ERRORS] += 1


def preempt(world: World, r: int, q: int) -> None:
    """Give back all blocks and start over from the head of the queue; what was computed may be found again."""
    release(world, r, q, True)
    world.request[q, COMPUTED] = 0
    world.request[q, STATUS] = WAITING
    world.counter[r, C_PREEMPTIONS] += 1
    push_front(world, r, q)
