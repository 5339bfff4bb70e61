"""vLLM V1 scheduling of one engine step: running requests first, then waiting ones, under one token budget."""

from stack.simulator.engine.admission import admit_waiting
from stack.simulator.engine.block_pool import take
from stack.simulator.engine.layout import (
    ADAPTIVE_THRESHOLD,
    ALL_DECODING,
    BLOCK,
    COMPUTED,
    FREE_BLOCKS,
    KNOWN,
    LONG_PREFILL,
    N_RUNNING,
    N_WAITING,
    PURE,
    ROOM,
    RUNNING_CAP,
    STEP_TOKENS_LIMIT,
    World,
)
from stack.simulator.engine.leaving import preempt
from stack.simulator.engine.prefix_cache import (
    grow,
)


def schedule(world: World, r: int, t: float) -> None:
    """Grant tokens to running requests and admit waiting ones; nobody is admitted in a step that preempted."""
    replica = world.replica
    n, budget = replica[r, N_RUNNING], int(world.replica_setting[r, STEP_TOKENS_LIMIT])
    if replica[r, ALL_DECODING] == 1 and n <= budget and grant_decoding(world, r):
        replica[r, PURE] = 1
        if replica[r, N_WAITING] > 0 and n < world.replica_setting[r, RUNNING_CAP]:
            admit_waiting(world, r, t, budget - n, threshold(world, r))
        return
    replica[r, PURE] = 0
    limit = threshold(world, r)
    budget, preempted = grant_running(world, r, budget, limit)
    if not preempted and replica[r, N_WAITING] > 0:
        admit_waiting(world, r, t, budget, limit)


def threshold(world: World, r: int) -> int:
    """Most tokens of one request in a step, 0 for no limit; a request that is alone is never cut."""
    requests = world.replica[r, N_RUNNING] + world.replica[r, N_WAITING]
    limit = int(world.replica_setting[r, LONG_PREFILL])
    if requests == 1 or limit == 0:
        return 0
    if world.constant[ADAPTIVE_THRESHOLD] > 0:
        limit = max(limit, int(world.replica_setting[r, STEP_TOKENS_LIMIT]) // requests)
    return limit


def grant_decoding(world: World, r: int) -> bool:
    """One token for every running request, all of which decode; false and nothing done if blocks are short."""
    request, running, n = world.request, world.running, world.replica[r, N_RUNNING]
    full = 0
    for i in range(n):
        q = running[r, i]
        if request[q, COMPUTED] >= request[q, ROOM]:
            full += 1
    if full == 0:
        return True
    if full > world.replica[r, FREE_BLOCKS]:
        return False
    take(world, r, full)
    for i in range(n):
        q = running[r, i]
        if request[q, COMPUTED] >= request[q, ROOM]:
            request[q, ROOM] += BLOCK
    return True


def grant_running(world: World, r: int, budget: int, limit: int) -> tuple[int, bool]:
    """Tokens and blocks for those already running; when blocks run out, the last one running is preempted."""
    request, replica, running, granted = world.request, world.replica, world.running, world.granted
    preempted = False
    i = 0
    while i < replica[r, N_RUNNING]:
        q = running[r, i]
        tokens = min(request[q, KNOWN] - request[q, COMPUTED], budget)
        if 0 < limit < tokens:
            tokens = limit
        granted[r, i] = tokens
        if tokens > 0:
            need = (request[q, COMPUTED] + tokens - request[q, ROOM] + BLOCK - 1) // BLOCK
            while need > 0 and need > replica[r, FREE_BLOCKS] and replica[r, N_RUNNING] > i:
                replica[r, N_RUNNING] -= 1
                preempt(world, r, running[r, replica[r, N_RUNNING]])
                preempted = True
            if replica[r, N_RUNNING] <= i:
                break
            grow(world, r, q, request[q, COMPUTED] + tokens)
            budget -= tokens
        i += 1
    return budget, preempted
