"""vLLM V1 scheduling of one engine step: running requests first, then waiting ones, under one token budget."""

from stack.simulator.engine.lanes import first_lane, pop
from stack.simulator.engine.layout import (
    ARRIVED_S,
    ASYNC_LAG,
    BATCH_LIMIT_S,
    BLOCK,
    BLOCKS,
    C_HIT,
    C_PROMPT,
    C_QUERIED,
    CHUNK_TOKENS,
    COMPUTED,
    DEADLINE_RATIO,
    FIRST_S,
    FREE_BLOCKS,
    GENERATED,
    HEAD,
    IS_BATCH,
    LANES,
    LONG_PREFILL,
    N_RUNNING,
    N_WAITING,
    PRIORITY,
    PROMPT,
    RUNNING,
    RUNNING_CAP,
    SCHEDULED_S,
    SENT_S,
    SHARED_CHUNKS,
    STATUS,
    STEP_START_S,
    STEP_TOKENS_LIMIT,
    TTFT_LIMIT_PER_TOKEN_S,
    TTFT_LIMIT_S,
    UNUSED_CHUNKS,
    USABLE_BLOCKS,
    World,
)
from stack.simulator.engine.leaving import abort, preempt, reject
from stack.simulator.engine.prefix_cache import cached_chunks, chunk_blocks, evict, share, unused_among


def schedule(world: World, r: int, t: float) -> None:
    """Grant tokens to running requests and admit waiting ones; nobody is admitted in a step that preempted."""
    budget = int(world.replica_setting[r, STEP_TOKENS_LIMIT])
    budget, preempted = grant_running(world, r, budget)
    if not preempted and world.replica[r, N_WAITING] > 0:
        admit_waiting(world, r, t, budget)


def grant_running(world: World, r: int, budget: int) -> tuple[int, bool]:
    """Tokens and blocks for those already running; when blocks run out, the last one running is preempted."""
    request, replica, running, granted = world.request, world.replica, world.running, world.granted
    size, threshold = chunk_blocks(world), int(world.replica_setting[r, LONG_PREFILL])
    preempted = False
    i = 0
    while i < replica[r, N_RUNNING]:
        q = running[r, i]
        left = request[q, PROMPT] + request[q, GENERATED] - request[q, COMPUTED]
        tokens = min(left, budget)
        if 0 < threshold < tokens:
            tokens = threshold
        granted[i] = tokens
        if tokens > 0:
            blocks = (request[q, COMPUTED] + tokens + BLOCK - 1) // BLOCK - request[q, SHARED_CHUNKS] * size
            need = blocks - request[q, BLOCKS]
            while need > 0 and need > replica[r, FREE_BLOCKS] and replica[r, N_RUNNING] > i:
                replica[r, N_RUNNING] -= 1
                preempt(world, r, running[r, replica[r, N_RUNNING]])
                preempted = True
            if replica[r, N_RUNNING] <= i:
                break
            if need > 0:
                replica[r, FREE_BLOCKS] -= need
                request[q, BLOCKS] = blocks
                if replica[r, UNUSED_CHUNKS] > 0:
                    evict(world, r)
            budget -= tokens
        i += 1
    return budget, preempted


def admit_waiting(world: World, r: int, t: float, budget: int) -> None:
    """Admit from the queue while the cap, the budget and the KV blocks for the whole prompt allow."""
    replica, request, queue = world.replica, world.request, world.queue
    cap, policy = world.replica_setting[r, RUNNING_CAP], int(world.pool_setting[PRIORITY])
    while replica[r, N_RUNNING] < cap and budget > 0:
        lane = first_lane(world, r, policy, LANES)
        if lane < 0:
            break
        q = queue[r, lane, HEAD]
        lagging = world.constant[ASYNC_LAG] > 0 and replica[r, N_RUNNING] > 0
        if lagging and world.time_s[q, SENT_S] > world.real[r, STEP_START_S]:
            break
        if too_late(world, q, t):
            pop(world, r, lane)
            abort(world, r, q, t)
            continue
        hits = cached_chunks(world, r, q)
        if not fits(world, r, q, hits):
            if replica[r, N_RUNNING] > 0 or fits_alone(world, r, q):
                break
            pop(world, r, lane)
            reject(world, r, q, t)
            continue
        pop(world, r, lane)
        tokens = admit(world, r, q, t, hits, budget)
        world.granted[replica[r, N_RUNNING]] = tokens
        world.running[r, replica[r, N_RUNNING]] = q
        replica[r, N_RUNNING] += 1
        request[q, STATUS] = RUNNING
        budget -= tokens


def too_late(world: World, q: int, t: float) -> bool:
    """Whether deadline shedding gives up on a request that has no token yet."""
    if world.time_s[q, FIRST_S] >= 0:
        return False
    constant = world.constant
    if world.request[q, IS_BATCH] == 1:
        limit = constant[BATCH_LIMIT_S]
    else:
        limit = constant[TTFT_LIMIT_S] + constant[TTFT_LIMIT_PER_TOKEN_S] * world.request[q, PROMPT]
    return bool(t - world.time_s[q, ARRIVED_S] > world.pool_setting[DEADLINE_RATIO] * limit)


def whole_blocks(world: World, q: int) -> int:
    """KV blocks of the prompt and what was generated before a preemption."""
    return int(world.request[q, PROMPT] + world.request[q, GENERATED] + BLOCK - 1) // BLOCK


def fits(world: World, r: int, q: int, hits: int) -> bool:
    """Whether the blocks for the whole prompt are free, cached chunks it would reuse not counted twice."""
    size = chunk_blocks(world)
    need = max(0, whole_blocks(world, q) - hits * size) + unused_among(world, r, q, hits) * size
    return bool(need <= world.replica[r, FREE_BLOCKS])


def fits_alone(world: World, r: int, q: int) -> bool:
    """Whether the request would fit into an empty replica."""
    return bool(whole_blocks(world, q) <= world.replica[r, USABLE_BLOCKS])


def admit(world: World, r: int, q: int, t: float, hits: int, budget: int) -> int:
    """Reserve what this step needs and return its tokens; a fully cached prompt still computes its last token."""
    request, counter = world.request, world.counter
    share(world, r, q, hits)
    total = int(request[q, PROMPT] + request[q, GENERATED])
    cached = min(hits * int(world.constant[CHUNK_TOKENS]), total - 1)
    tokens, threshold = min(total - cached, budget), int(world.replica_setting[r, LONG_PREFILL])
    if 0 < threshold < tokens:
        tokens = threshold
    blocks = max(0, (cached + tokens + BLOCK - 1) // BLOCK - hits * chunk_blocks(world))
    request[q, BLOCKS] = blocks
    request[q, COMPUTED] = cached
    world.replica[r, FREE_BLOCKS] -= blocks
    evict(world, r)
    if world.time_s[q, SCHEDULED_S] < 0:
        world.time_s[q, SCHEDULED_S] = t
        counter[r, C_QUERIED] += total
        counter[r, C_HIT] += cached
        counter[r, C_PROMPT] += total
    return tokens
