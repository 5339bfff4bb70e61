"""The gateway: which replica gets a request. Its own counts are exact, engine facts are as of its last scrape."""

from stack.simulator.engine.lanes import first_lane, gateway_length, pop, push_back
from stack.simulator.engine.layout import (
    BATCH_CAP,
    BATCH_IN_FLIGHT,
    CHAIN_AT,
    CHUNK_TOKENS,
    CLOCK_S,
    CONCURRENCY_CAP,
    CREDIT,
    DRAINED,
    HEAD,
    IN_FLIGHT,
    IS_BATCH,
    LANES,
    LEAST_TOKENS,
    LOAD_BOUND,
    METRICS_FROZEN,
    MUST_PUMP,
    N_RUNNING,
    N_WAITING,
    OUTSTANDING_TOKENS,
    PHASE,
    PIN_REPLICA,
    PIN_SHARE,
    PLANNED,
    POLICY,
    PREFIX_AWARE,
    PRIORITY,
    PROMPT,
    READY,
    REPLICA,
    ROTATION,
    ROUND_ROBIN,
    RUNNING_CAP,
    SCRAPES,
    SEEN_TOKENS,
    SEEN_WAITING,
    SENT_IN,
    SENT_S,
    SENT_TOKENS,
    SESSION,
    SESSION_HASH,
    STATUS,
    WAITING,
    WEIGHT,
    World,
)
from stack.simulator.engine.leaving import shed
from stack.simulator.engine.prefix_cache import believed_chunks, cached_chunks, reusable
from stack.simulator.engine.scheduling import too_late
from stack.simulator.engine.step import cut

REQUEST_COST_TOKENS = 64.0
"""What one request in flight weighs beside its prompt tokens, so that decoding replicas do not look idle."""
MULTIPLIER, MODULUS = 2654435761, 4294967296
"""Knuth's multiplicative hash on 32 bits."""


def scrambled(x: int) -> int:
    """A hash of a small non-negative number, 0 to 2^32 - 1; small enough that 64-bit integers never overflow."""
    return int((x % MODULUS) * MULTIPLIER % MODULUS)


def eligible(world: World, r: int, q: int) -> bool:
    """Whether the gateway may send the request to the replica now."""
    setting, replica = world.replica_setting, world.replica
    if replica[r, PHASE] != READY or setting[r, WEIGHT] <= 0 or setting[r, DRAINED] > 0:
        return False
    if replica[r, IN_FLIGHT] >= setting[r, CONCURRENCY_CAP]:
        return False
    return bool(world.request[q, IS_BATCH] == 0 or replica[r, BATCH_IN_FLIGHT] < world.pool_setting[BATCH_CAP])


def choose(world: World, q: int) -> int:
    """The replica for a request by the routing policy, or -1 when none may take it now."""
    pinned = int(world.constant[PIN_REPLICA])
    if scrambled(q) < world.constant[PIN_SHARE] * MODULUS and eligible(world, pinned, q):
        return pinned
    policy = int(world.pool_setting[POLICY])
    if policy == ROUND_ROBIN:
        return by_turns(world, q)
    if policy == SESSION_HASH and world.request[q, SESSION] >= 0:
        return by_session(world, q)
    return by_least(world, q, policy)


def by_turns(world: World, q: int) -> int:
    """Smooth weighted round robin."""
    belief, best, weights = world.belief, -1, 0.0
    for r in range(world.replica.shape[0]):
        if not eligible(world, r, q):
            continue
        weight = world.replica_setting[r, WEIGHT]
        belief[r, CREDIT] += weight
        weights += weight
        if best < 0 or belief[r, CREDIT] > belief[best, CREDIT]:
            best = r
    if best >= 0:
        belief[best, CREDIT] -= weights
    return best


def by_session(world: World, q: int) -> int:
    """Session hash with bounded load: the first replica on the session's own tour that is not overloaded."""
    replica, setting, n = world.replica, world.replica_setting, world.replica.shape[0]
    in_flight, weights = 1.0, 0.0
    for r in range(n):
        in_flight += replica[r, IN_FLIGHT]
        if replica[r, PHASE] == READY and setting[r, DRAINED] == 0:
            weights += setting[r, WEIGHT]
    start = (scrambled(world.request[q, SESSION] + 1) >> 7) % n
    fallback = -1
    for k in range(n):
        r = (start + k) % n
        if not eligible(world, r, q):
            continue
        bound = world.constant[LOAD_BOUND] * in_flight * setting[r, WEIGHT] / weights
        if replica[r, IN_FLIGHT] < bound + 1.0:
            return int(r)
        if fallback < 0 or replica[r, IN_FLIGHT] < replica[fallback, IN_FLIGHT]:
            fallback = r
    return fallback


def by_least(world: World, q: int, policy: int) -> int:
    """The replica with the least load per weight; ties go round."""
    n = world.replica.shape[0]
    best, best_load = -1, 0.0
    first = world.cursor[ROTATION]
    world.cursor[ROTATION] = (first + 1) % n
    for k in range(n):
        r = (first + k) % n
        if not eligible(world, r, q):
            continue
        load = load_of(world, r, q, policy) / world.replica_setting[r, WEIGHT]
        if best < 0 or load < best_load - 1e-9:
            best, best_load = r, load
    return best


def load_of(world: World, r: int, q: int, policy: int) -> float:
    """What the replica has to do, as the gateway sees it; with prefix awareness also what this request would add."""
    in_flight = float(world.replica[r, IN_FLIGHT])
    if policy != LEAST_TOKENS and policy != PREFIX_AWARE:
        return in_flight + 1.0
    load = world.belief[r, SEEN_TOKENS] + REQUEST_COST_TOKENS * in_flight + 1.0
    if policy == PREFIX_AWARE:
        cached = believed_chunks(world, r, q) * world.constant[CHUNK_TOKENS]
        load += world.constant[LOAD_BOUND] * (world.request[q, PROMPT] - cached)
    return float(load)


def send(world: World, q: int, r: int, t: float) -> None:
    """Hand a request to a replica."""
    request, replica, belief = world.request, world.replica, world.belief
    if replica[r, N_RUNNING] == 0 and replica[r, N_WAITING] == 0:
        world.real[r, CLOCK_S] = max(world.real[r, CLOCK_S], t)
    tokens = request[q, PROMPT] - cached_chunks(world, r, q) * int(world.constant[CHUNK_TOKENS])
    request[q, SENT_TOKENS] = tokens
    request[q, REPLICA] = r
    request[q, STATUS] = WAITING
    world.time_s[q, SENT_S] = t
    replica[r, IN_FLIGHT] += 1
    replica[r, BATCH_IN_FLIGHT] += request[q, IS_BATCH]
    replica[r, OUTSTANDING_TOKENS] += tokens
    belief[r, SEEN_TOKENS] += request[q, PROMPT]
    belief[r, SEEN_WAITING] += 1
    if world.pool_setting[POLICY] == PREFIX_AWARE:
        for j in range(reusable(world, q)):
            world.cache[r, world.chain[request[q, CHAIN_AT] + j], SENT_IN] = world.cursor[SCRAPES]
    push_back(world, r, q)
    if replica[r, PLANNED] == 0 or replica[r, N_RUNNING] < world.replica_setting[r, RUNNING_CAP]:
        cut(world, r, t)


def scrape(world: World) -> None:
    """The gateway learns what the engines say of themselves, unless metrics are stuck."""
    if world.constant[METRICS_FROZEN] > 0:
        return
    world.cursor[SCRAPES] += 1
    for r in range(world.replica.shape[0]):
        world.belief[r, SEEN_TOKENS] = world.replica[r, OUTSTANDING_TOKENS]
        world.belief[r, SEEN_WAITING] = world.replica[r, N_WAITING]


def pump(world: World, t: float) -> None:
    """Send what waits at the gateway while replicas take it; batch requests do not block interactive ones."""
    gateway, policy = world.replica.shape[0], int(world.pool_setting[PRIORITY])
    world.cursor[MUST_PUMP] = 0
    lanes = LANES
    while gateway_length(world) > 0:
        lane = first_lane(world, gateway, policy, lanes)
        if lane < 0:
            break
        q = world.queue[gateway, lane, HEAD]
        if too_late(world, q, t):
            pop(world, gateway, lane)
            shed(world, q, t)
            continue
        r = choose(world, q)
        if r >= 0:
            pop(world, gateway, lane)
            send(world, q, r, t)
        elif world.request[q, IS_BATCH] == 1 and lanes == LANES:
            lanes = 2
        else:
            break
