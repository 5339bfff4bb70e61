"""What the next engine steps of a replica take: kernels by the tables, host time, and what is slow about it."""

from stack.simulator.engine.interpolation import across, along
from stack.simulator.engine.layout import (
    ATTENTION_SCALE,
    BLOCK,
    COMPUTED,
    END,
    FIRST_STEP_S,
    FREE_BLOCKS,
    GROWTH_S,
    HARDWARE_SCALE,
    KNOWN,
    MACRO_STEPS,
    N_RUNNING,
    N_WAITING,
    PLANNED,
    PROMPT,
    RUNNING_CAP,
    SEQUENCE_MS,
    STEP_MS,
    WORKER_SCALE,
    Tables,
    World,
)


def price_decoding(world: World, tables: Tables, r: int) -> None:
    """How many equal decode steps come next, what the first takes and how much longer each one is than the last."""
    request, running, real = world.request, world.running, world.real
    n = world.replica[r, N_RUNNING]
    q = running[r, 0]
    context, left = 0, request[q, END] - request[q, KNOWN]
    for i in range(n):
        q = running[r, i]
        context += request[q, COMPUTED] + 1
        left = min(left, request[q, END] - request[q, KNOWN])
    mean = context / n
    rest_ms = along(tables.batches, tables.generation_ms, float(n))
    real[r, FIRST_STEP_S] = decode_s(world, tables, r, n, rest_ms, mean)
    full = n >= world.replica_setting[r, RUNNING_CAP]
    if world.constant[MACRO_STEPS] == 0 or (world.replica[r, N_WAITING] > 0 and not full):
        return
    steps = min(left, world.replica[r, FREE_BLOCKS] // n * BLOCK + 1)
    if steps > 1:
        last_s = decode_s(world, tables, r, n, rest_ms, mean + (steps - 1))
        real[r, GROWTH_S] = max(0.0, (last_s - real[r, FIRST_STEP_S]) / (steps - 1))
        world.replica[r, PLANNED] = steps


def decode_s(world: World, tables: Tables, r: int, n: int, rest_ms: float, context: float) -> float:
    """Duration of a pure decode step with `n` requests of `context` tokens on average; `rest_ms` is not attention."""
    attention_ms = across(tables.batches, tables.contexts, tables.decode_attention_ms, float(n), context)
    return seconds(world, r, n, rest_ms + attention_ms * world.real[r, ATTENTION_SCALE])


def seconds(world: World, r: int, n: int, kernels_ms: float) -> float:
    """Kernel time plus host overhead, both as slow as this replica is at present."""
    real = world.real
    host_ms = real[r, STEP_MS] + real[r, SEQUENCE_MS] * n
    return float((kernels_ms + host_ms) * real[r, HARDWARE_SCALE] * real[r, WORKER_SCALE] * 1e-3)


def mixed_s(world: World, tables: Tables, r: int) -> float:
    """Duration of a step with at least one prefill chunk, or with requests that got no tokens."""
    request, running, granted = world.request, world.running, world.granted
    n = world.replica[r, N_RUNNING]
    tokens, decoding, context, attention_ms = 0, 0, 0, 0.0
    for i in range(n):
        q, new = running[r, i], granted[r, i]
        if new == 0:
            continue
        tokens += new
        computed = request[q, COMPUTED]
        if new == 1 and computed >= request[q, PROMPT]:
            decoding += 1
            context += computed + 1
        else:
            attention_ms += across(
                tables.chunks, tables.cached, tables.prefill_attention_ms, float(new), float(computed)
            )
    if decoding == tokens:
        kernels_ms = along(tables.batches, tables.generation_ms, float(tokens))
    else:
        kernels_ms = along(tables.tokens, tables.context_ms, float(tokens)) + attention_ms
    if decoding > 0:
        mean = context / decoding
        kernels_ms += world.real[r, ATTENTION_SCALE] * across(
            tables.batches, tables.contexts, tables.decode_attention_ms, float(decoding), mean
        )
    return seconds(world, r, n, kernels_ms)
