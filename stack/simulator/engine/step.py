"""One engine step of one replica, or several equal ones at once while nothing can change in between."""

from stack.simulator.engine.interpolation import across, along
from stack.simulator.engine.layout import (
    ATTENTION_SCALE,
    BLOCK,
    BLOCKS,
    BUSY_S,
    C_GENERATION,
    CHAIN_LENGTH,
    CLOCK_S,
    COMPUTED,
    FREE_BLOCKS,
    GENERATED,
    H_ITL,
    H_STEP,
    HARDWARE_SCALE,
    LAST_S,
    N_RUNNING,
    N_WAITING,
    OUTPUT,
    PROMPT,
    RUNNING_CAP,
    SEQUENCE_MS,
    SHARED_CHUNKS,
    STEP_MS,
    STEP_START_S,
    STEPS,
    WORKER_SCALE,
    Tables,
    World,
)
from stack.simulator.engine.leaving import finish, first_token
from stack.simulator.engine.meter import bucket_of, observe
from stack.simulator.engine.prefix_cache import chunk_blocks, evict, publish
from stack.simulator.engine.scheduling import schedule


def step(world: World, tables: Tables, r: int, until_s: float) -> None:
    """Run the replica's next step; its clock then stands at the step's end, which may lie beyond `until_s`."""
    replica, real = world.replica, world.real
    t = real[r, CLOCK_S]
    schedule(world, r, t)
    n = replica[r, N_RUNNING]
    if n == 0:
        return
    if only_decoding(world, r):
        decode(world, tables, r, until_s)
    else:
        mix(world, tables, r)
    real[r, BUSY_S] += real[r, CLOCK_S] - t


def only_decoding(world: World, r: int) -> bool:
    """Whether every running request computes exactly its next token."""
    request, running, granted = world.request, world.running, world.granted
    for i in range(world.replica[r, N_RUNNING]):
        q = running[r, i]
        if granted[i] != 1 or request[q, COMPUTED] < request[q, PROMPT]:
            return False
    return True


def decode(world: World, tables: Tables, r: int, until_s: float) -> None:
    """A pure decode step, repeated while nobody finishes, nobody can be admitted and the KV blocks suffice.

    Attention time is linear in context within a table cell, so the mean context of the repeated steps gives their sum.
    """
    request, running, real = world.request, world.running, world.real
    n, t = world.replica[r, N_RUNNING], real[r, CLOCK_S]
    context, left = 0.0, request[running[r, 0], OUTPUT]
    for i in range(n):
        q = running[r, i]
        context += request[q, COMPUTED] + 1
        left = min(left, request[q, OUTPUT] - request[q, GENERATED])
    context /= n
    duration = decode_s(world, tables, r, n, context)
    steps = 1
    if world.replica[r, N_WAITING] == 0 or n >= world.replica_setting[r, RUNNING_CAP]:
        steps = min(left, int((until_s - t) / duration) + 1, (world.replica[r, FREE_BLOCKS] // n - 1) * BLOCK)
        steps = max(1, steps)
        if steps > 1:
            duration = decode_s(world, tables, r, n, context + 0.5 * (steps - 1))
    real[r, STEP_START_S] = t + duration * (steps - 1)
    real[r, CLOCK_S] = t + duration * steps
    world.replica[r, STEPS] += steps
    observe(world, r, H_STEP, float(n), steps)
    advance_decoding(world, r, t, duration, steps)


def decode_s(world: World, tables: Tables, r: int, n: int, context: float) -> float:
    """Duration of a pure decode step with `n` requests of `context` tokens on average."""
    real = world.real
    attention = across(tables.batches, tables.contexts, tables.decode_attention_ms, float(n), context)
    kernels_ms = along(tables.batches, tables.generation_ms, float(n)) + attention * real[r, ATTENTION_SCALE]
    return seconds(world, r, n, kernels_ms)


def seconds(world: World, r: int, n: int, kernels_ms: float) -> float:
    """Kernel time plus host overhead, both as slow as this replica is at present."""
    real = world.real
    host_ms = real[r, STEP_MS] + real[r, SEQUENCE_MS] * n
    return float((kernels_ms + host_ms) * real[r, HARDWARE_SCALE] * real[r, WORKER_SCALE] * 1e-3)


def advance_decoding(world: World, r: int, t: float, duration: float, steps: int) -> None:
    """Give every running request `steps` tokens and the blocks they need."""
    request, running, replica, time_s = world.request, world.running, world.replica, world.time_s
    size, n, end = chunk_blocks(world), replica[r, N_RUNNING], t + duration * steps
    kept = 0
    known, bucket = -1.0, 0
    for i in range(n):
        q = running[r, i]
        gap = t + duration - time_s[q, LAST_S]
        if gap != known:
            known, bucket = gap, bucket_of(world, H_ITL, gap)
        world.bucket[r, H_ITL, bucket] += 1
        world.total[r, H_ITL] += gap
        time_s[q, LAST_S] = end
        request[q, COMPUTED] += steps
        request[q, GENERATED] += steps
        if steps > 1:
            blocks = (request[q, COMPUTED] + BLOCK - 1) // BLOCK - request[q, SHARED_CHUNKS] * size
            replica[r, FREE_BLOCKS] -= blocks - request[q, BLOCKS]
            request[q, BLOCKS] = blocks
        if request[q, GENERATED] >= request[q, OUTPUT]:
            finish(world, r, q, end)
        else:
            running[r, kept] = q
            kept += 1
    replica[r, N_RUNNING] = kept
    if steps > 1:
        observe(world, r, H_ITL, duration, n * (steps - 1))
        evict(world, r)
    world.counter[r, C_GENERATION] += n * steps


def mix(world: World, tables: Tables, r: int) -> None:
    """A step with at least one prefill chunk, or with requests that got no tokens."""
    request, running, granted, real = world.request, world.running, world.granted, world.real
    n, t = world.replica[r, N_RUNNING], real[r, CLOCK_S]
    tokens, decoding, context, attention_ms = 0, 0, 0.0, 0.0
    for i in range(n):
        q, new = running[r, i], granted[i]
        if new == 0:
            continue
        tokens += new
        if new == 1 and request[q, COMPUTED] >= request[q, PROMPT]:
            decoding += 1
            context += request[q, COMPUTED] + 1
        else:
            attention_ms += across(
                tables.chunks, tables.cached, tables.prefill_attention_ms, float(new), float(request[q, COMPUTED])
            )
    kernels_ms = along(tables.tokens, tables.context_ms, float(tokens)) + attention_ms
    if decoding > 0:
        mean = context / decoding
        kernels_ms += real[r, ATTENTION_SCALE] * across(
            tables.batches, tables.contexts, tables.decode_attention_ms, float(decoding), mean
        )
    end = t + seconds(world, r, n, kernels_ms)
    real[r, STEP_START_S] = t
    real[r, CLOCK_S] = end
    world.replica[r, STEPS] += 1
    observe(world, r, H_STEP, float(tokens), 1)
    advance_mixed(world, r, end)


def advance_mixed(world: World, r: int, end: float) -> None:
    """Account the tokens granted in this step; a request whose tokens are all computed produces the next one."""
    request, running, granted, time_s = world.request, world.running, world.granted, world.time_s
    kept = 0
    known, bucket = -1.0, 0
    for i in range(world.replica[r, N_RUNNING]):
        q, new = running[r, i], granted[i]
        request[q, COMPUTED] += new
        if new > 0:
            if request[q, CHAIN_LENGTH] > request[q, SHARED_CHUNKS]:
                publish(world, r, q)
            if request[q, COMPUTED] >= request[q, PROMPT] + request[q, GENERATED]:
                request[q, GENERATED] += 1
                world.counter[r, C_GENERATION] += 1
                if request[q, GENERATED] == 1:
                    first_token(world, r, q, end)
                else:
                    gap = end - time_s[q, LAST_S]
                    if gap != known:
                        known, bucket = gap, bucket_of(world, H_ITL, gap)
                    world.bucket[r, H_ITL, bucket] += 1
                    world.total[r, H_ITL] += gap
                    time_s[q, LAST_S] = end
                if request[q, GENERATED] >= request[q, OUTPUT]:
                    finish(world, r, q, end)
                    continue
        running[r, kept] = q
        kept += 1
    world.replica[r, N_RUNNING] = kept
