"""What engine steps that are over have brought: tokens, blocks, and requests that are done."""

from stack.simulator.engine.block_pool import take
from stack.simulator.engine.layout import (
    ALL_DECODING,
    BLOCK,
    C_GENERATION,
    CHAIN_LENGTH,
    COMPUTED,
    END,
    H_ITL,
    H_STEP,
    KNOWN,
    LAST_S,
    N_RUNNING,
    PROMPT,
    REUSE_LOST,
    ROOM,
    SHARED_CHUNKS,
    World,
)
from stack.simulator.engine.leaving import finish, first_token
from stack.simulator.engine.meter import observe


def advance_decoding(world: World, r: int, first_end: float, end: float, steps: int) -> None:
    """Give every running request `steps` tokens and the blocks they need.

    Args:
        first_end: when the first of these steps ends.
        end: when the last one ends.
    """
    request, running, time_s = world.request, world.running, world.time_s
    n, blocks, over = world.replica[r, N_RUNNING], 0, 0
    gap, alike = first_end - time_s[running[r, 0], LAST_S], 0
    for i in range(n):
        q = running[r, i]
        own_gap = first_end - time_s[q, LAST_S]
        if own_gap == gap:
            alike += 1
        else:
            observe(world, r, H_ITL, gap, alike)
            gap, alike = own_gap, 1
        time_s[q, LAST_S] = end
        computed = request[q, COMPUTED] + steps
        request[q, COMPUTED] = computed
        known = request[q, KNOWN] + steps
        request[q, KNOWN] = known
        if known >= request[q, END]:
            over += 1
        if computed > request[q, ROOM]:
            more = (computed - request[q, ROOM] + BLOCK - 1) // BLOCK
            request[q, ROOM] += more * BLOCK
            blocks += more
    if blocks > 0:
        take(world, r, blocks)
    observe(world, r, H_ITL, gap, alike)
    observe(world, r, H_STEP, float(n), steps)
    if steps > 1:
        observe(world, r, H_ITL, (end - first_end) / (steps - 1), n * (steps - 1))
    world.counter[r, C_GENERATION] += n * steps
    if over > 0:
        let_go(world, r, end)


def let_go(world: World, r: int, end: float) -> None:
    """Requests with all their tokens leave; the others keep their order."""
    request, running, kept = world.request, world.running, 0
    for i in range(world.replica[r, N_RUNNING]):
        q = running[r, i]
        if request[q, KNOWN] >= request[q, END]:
            finish(world, r, q, end)
        else:
            running[r, kept] = q
            kept += 1
    world.replica[r, N_RUNNING] = kept


def advance_mixed(world: World, r: int, end: float) -> None:
    """Account the tokens granted in this step; a request whose known tokens are all computed gets the next one."""
    request, running, granted, time_s = world.request, world.running, world.granted, world.time_s
    gap, alike, tokens, decoding, over = 0.0, 0, 0, 1, 0
    for i in range(world.replica[r, N_RUNNING]):
        q, new = running[r, i], granted[r, i]
        tokens += new
        request[q, COMPUTED] += new
        if request[q, COMPUTED] < request[q, KNOWN]:
            decoding = 0
        elif new > 0:
            request[q, KNOWN] += 1
            world.counter[r, C_GENERATION] += 1
            if request[q, KNOWN] == request[q, PROMPT] + 1:
                first_token(world, r, q, end)
            else:
                own_gap = end - time_s[q, LAST_S]
                if own_gap == gap:
                    alike += 1
                else:
                    if alike > 0:
                        observe(world, r, H_ITL, gap, alike)
                    gap, alike = own_gap, 1
                time_s[q, LAST_S] = end
            if request[q, KNOWN] >= request[q, END]:
                over += 1
        if request[q, CHAIN_LENGTH] > request[q, SHARED_CHUNKS] and world.constant[REUSE_LOST] == 0:
            decoding = 0
    if alike > 0:
        observe(world, r, H_ITL, gap, alike)
    observe(world, r, H_STEP, float(tokens), 1)
    world.replica[r, ALL_DECODING] = decoding
    if over > 0:
        let_go(world, r, end)
