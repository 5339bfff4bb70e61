"""Which waiting requests join an engine step."""

from stack.simulator.engine.lanes import first_lane, pop
from stack.simulator.engine.layout import (
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
    N_RUNNING,
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
    TOTAL_BLOCKS,
    TTFT_LIMIT_PER_TOKEN_S,
    TTFT_LIMIT_S,
    USABLE_BLOCKS,
    WATERMARK_RATIO,
    World,
)
from stack.simulator.engine.leaving import abort, reject
from stack.simulator.engine.prefix_cache import (
    cached_chunks,
    chunk_blocks,
    grow,
    kept_blocks,
    share,
    take_kept,
    unused_blocks,
)


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
        kept = kept_blocks(world, r, q, hits)
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
        admit(world, r, q, t, hits, kept, tokens)
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
    """The request runs from this step on: it takes over what is cached and gets blocks for this step's tokens."""
    request, counter = world.request, world.counter
    give_up_pure(world, r)
    n = world.replica[r, N_RUNNING]
    world.running[r, n] = q
    world.granted[r, n] = tokens
    world.replica[r, N_RUNNING] = n + 1
    request[q, STATUS] = RUNNING
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
