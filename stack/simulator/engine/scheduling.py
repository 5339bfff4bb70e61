"""vLLM V1 scheduling of one engine step: running requests first, then waiting ones, under one token budget."""

from stack.simulator.engine.block_pool import take
from stack.simulator.engine.lanes import first_lane, pop
from stack.simulator.engine.layout import (
    ADAPTIVE_THRESHOLD,
    ALL_DECODING,
    ARRIVED_S,
    ASYNC_LAG,
    BATCH_LIMIT_S,
    BLOCK,
    C_HIT,
    C_PROMPT,
    C_QUERIED,
    CHUNKED_PREFILL,
    COMPUTED,
    DEADLINE_RATIO,
    FIRST_S,
    FREE_BLOCKS,
    HEAD,
    IS_BATCH,
    KNOWN,
    LANES,
    LONG_PREFILL,
    N_RUNNING,
    N_WAITING,
    PRIORITY,
    PROMPT,
    PURE,
    RESERVE_WHOLE,
    ROOM,
    RUNNING,
    RUNNING_CAP,
    SCHEDULED_S,
    SENT_S,
    STATUS,
    STEP_START_S,
    STEP_TOKENS_LIMIT,
    TOTAL_BLOCKS,
    TTFT_LIMIT_PER_TOKEN_S,
    TTFT_LIMIT_S,
    USABLE_BLOCKS,
    WATERMARK_RATIO,
    World,
)
from stack.simulator.engine.leaving import abort, preempt, reject
from stack.simulator.engine.prefix_cache import (
    cached_chunks,
    chunk_blocks,
    grow,
    kept_blocks,
    share,
    take_kept,
    unused_blocks,
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


def admit_waiting(world: World, r: int, t: float, budget: int, limit: int) -> None:
    """Admit from the queue while the cap, the budget and the KV blocks for all known tokens allow."""
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
        kept = kept_blocks(world, q, r, hits)
        cached = (hits * chunk_blocks(world) + kept) * BLOCK
        tokens = request[q, KNOWN] - cached
        if 0 < limit < tokens:
            tokens = limit
        if tokens > budget and world.constant[CHUNKED_PREFILL] == 0:
            break
        tokens = min(tokens, budget)
        if not fits(world, r, q, hits, kept, tokens):
            if replica[r, N_RUNNING] > 0 or fits_alone(world, r, q):
                break
            pop(world, r, lane)
            reject(world, r, q, t)
            continue
        pop(world, r, lane)
        give_up_pure(world, r)
        admit(world, r, q, t, hits, kept, tokens)
        world.granted[r, replica[r, N_RUNNING]] = tokens
        world.running[r, replica[r, N_RUNNING]] = q
        replica[r, N_RUNNING] += 1
        request[q, STATUS] = RUNNING
        budget -= tokens


def give_up_pure(world: World, r: int) -> None:
    """A step planned as pure decode gets other company: write down what each running request was granted."""
    if world.replica[r, PURE] == 1:
        world.replica[r, PURE] = 0
        for i in range(world.replica[r, N_RUNNING]):
            world.granted[r, i] = 1


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
    return int(world.request[q, KNOWN] + BLOCK - 1) // BLOCK


def fits(world: World, r: int, q: int, hits: int, kept: int, tokens: int) -> bool:
    """Whether the blocks for all known tokens are free; cached ones it would reuse cost room only while unused.

    Nothing is reserved by this test. Without it (RESERVE_WHOLE 0) the blocks for this step's tokens suffice.
    """
    found, blocks, reserve = hits * chunk_blocks(world) + kept, whole_blocks(world, q), 0
    if world.constant[RESERVE_WHOLE] == 0:
        blocks = found + (tokens + BLOCK - 1) // BLOCK
    if world.replica[r, N_RUNNING] > 0:
        reserve = int(world.constant[WATERMARK_RATIO] * world.replica[r, TOTAL_BLOCKS])
    need = max(0, blocks - found) + unused_blocks(world, r, q, hits) + kept + reserve
    return bool(need <= world.replica[r, FREE_BLOCKS])


def fits_alone(world: World, r: int, q: int) -> bool:
    """Whether the request would fit into an empty replica."""
    return bool(whole_blocks(world, q) <= world.replica[r, USABLE_BLOCKS])


def admit(world: World, r: int, q: int, t: float, hits: int, kept: int, tokens: int) -> None:
    """Take over what is cached and allocate what this step's tokens need."""
    request, counter = world.request, world.counter
    share(world, r, q, hits)
    take_kept(world, r, q, kept)
    cached = (hits * chunk_blocks(world) + kept) * BLOCK
    request[q, ROOM] = cached
    request[q, COMPUTED] = cached
    grow(world, r, q, cached + tokens)
    if world.time_s[q, SCHEDULED_S] < 0:
        world.time_s[q, SCHEDULED_S] = t
        counter[r, C_QUERIED] += request[q, KNOWN]
        counter[r, C_HIT] += cached
        counter[r, C_PROMPT] += request[q, KNOWN]
