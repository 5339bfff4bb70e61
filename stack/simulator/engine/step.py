"""Engine steps of one replica: planned when they begin, in force when they end.

While nobody finishes, nobody can be admitted and the KV blocks suffice, a batch that only decodes repeats its step.
Such steps are planned together and cut short when something comes in between. Attention time is linear in context
within a table cell, so each of them takes a constant longer than the last.
"""

from math import sqrt

from stack.simulator.engine.block_pool import take
from stack.simulator.engine.interpolation import across, along
from stack.simulator.engine.layout import (
    ALL_DECODING,
    ASYNC_LAG,
    ATTENTION_SCALE,
    BLOCK,
    BUSY_S,
    C_GENERATION,
    CHAIN_LENGTH,
    CLOCK_S,
    COMPUTED,
    END,
    FIRST_STEP_S,
    FREE_BLOCKS,
    GROWTH_S,
    H_ITL,
    H_STEP,
    HARDWARE_SCALE,
    KNOWN,
    LAST_S,
    MACRO_STEPS,
    N_RUNNING,
    N_WAITING,
    NEVER,
    PLAN_END_S,
    PLANNED,
    PROMPT,
    PURE,
    REUSE_LOST,
    ROOM,
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
from stack.simulator.engine.meter import observe
from stack.simulator.engine.scheduling import grant_decoding, schedule


def plan(world: World, tables: Tables, r: int) -> bool:
    """Begin the replica's next step, or several equal ones; false if it has nothing to run."""
    replica, real = world.replica, world.real
    schedule(world, r, real[r, CLOCK_S])
    if replica[r, N_RUNNING] == 0:
        set_due(world, r)
        return False
    real[r, STEP_START_S] = real[r, CLOCK_S]
    replica[r, PLANNED] = 1
    real[r, GROWTH_S] = 0.0
    if replica[r, PURE] == 1:
        price_decoding(world, tables, r)
    else:
        real[r, FIRST_STEP_S] = mixed_s(world, tables, r)
    real[r, PLAN_END_S] = real[r, CLOCK_S] + steps_s(world, r, replica[r, PLANNED])
    set_due(world, r)
    return True


def set_due(world: World, r: int) -> None:
    """Note when the replica needs attention next."""
    replica, real = world.replica, world.real
    if replica[r, PLANNED] > 0:
        world.due_s[r] = real[r, PLAN_END_S]
    elif replica[r, N_RUNNING] > 0 or replica[r, N_WAITING] > 0:
        world.due_s[r] = real[r, CLOCK_S]
    else:
        world.due_s[r] = NEVER


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


def steps_s(world: World, r: int, steps: int) -> float:
    """Duration of the first `steps` of the steps under way."""
    real = world.real
    return float(steps * real[r, FIRST_STEP_S] + real[r, GROWTH_S] * (0.5 * steps * (steps - 1)))


def steps_over(world: World, r: int, t: float) -> int:
    """How many of the steps under way are over at time `t`."""
    passed, first, growth = t - world.real[r, CLOCK_S], world.real[r, FIRST_STEP_S], world.real[r, GROWTH_S]
    most = world.replica[r, PLANNED]
    if passed < first:
        return 0
    half = first - 0.5 * growth
    steps = int(passed / first)
    if growth > 0:
        steps = int((sqrt(half * half + 2 * growth * passed) - half) / growth)
    steps = min(most, steps)
    while steps > 0 and steps_s(world, r, steps) > passed:
        steps -= 1
    while steps < most and steps_s(world, r, steps + 1) <= passed:
        steps += 1
    return int(steps)


def cut(world: World, r: int, t: float) -> None:
    """A request has come at `t`: of the steps under way only those that it cannot take part in are run.

    With asynchronous scheduling the step after the one in progress is already scheduled.
    """
    if world.replica[r, PLANNED] > 1:
        steps = steps_over(world, r, t)
        if world.constant[ASYNC_LAG] > 0 and t > world.real[r, CLOCK_S] + steps_s(world, r, steps):
            steps += 1
        keep(world, r, steps + 1)
    set_due(world, r)


def keep(world: World, r: int, steps: int) -> None:
    """No more than the first `steps` of the steps under way are run."""
    if world.replica[r, PLANNED] > steps:
        world.replica[r, PLANNED] = steps
        world.real[r, PLAN_END_S] = world.real[r, CLOCK_S] + steps_s(world, r, steps)


def settle(world: World, r: int, t: float) -> None:
    """Put in force what is over at `t`; at most one step remains under way, and it has its blocks."""
    if world.replica[r, PLANNED] > 1:
        over = steps_over(world, r, t)
        keep(world, r, over + 1)
        over = min(over, world.replica[r, PLANNED] - 1)
        if over > 0:
            commit(world, r, over)
            grant_decoding(world, r)
        set_due(world, r)


def commit(world: World, r: int, steps: int) -> None:
    """The first `steps` of the steps under way are over."""
    replica, real = world.replica, world.real
    begin, first, growth = real[r, CLOCK_S], real[r, FIRST_STEP_S], real[r, GROWTH_S]
    end = begin + steps_s(world, r, steps)
    rest = replica[r, PLANNED] - steps
    if rest == 0:
        end = real[r, PLAN_END_S]
    replica[r, PLANNED] = rest
    replica[r, STEPS] += steps
    real[r, BUSY_S] += end - begin
    real[r, CLOCK_S] = end
    real[r, STEP_START_S] = end if rest > 0 else end - (first + growth * (steps - 1))
    real[r, FIRST_STEP_S] = first + growth * steps
    if replica[r, PURE] == 1:
        advance_decoding(world, r, begin + first, end, steps)
    else:
        advance_mixed(world, r, end)
    set_due(world, r)


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
