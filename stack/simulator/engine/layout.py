"""Where each number of the simulation's state lives: column names of its tables, and the tables together.

Tables, not objects, because numba compiles array access to single instructions and a copy of the whole state is a
copy of two dozen arrays. Times are seconds of virtual time, lengths are tokens, memory is KV blocks.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
SmallInts = NDArray[np.int32]
Floats = NDArray[np.float64]

# request: integers
PROMPT, OUTPUT, IS_BATCH, SESSION, CHAIN_AT, CHAIN_LENGTH = 0, 1, 2, 3, 4, 5
STATUS, REPLICA, COMPUTED, KNOWN, ROOM, SHARED_CHUNKS, SENT_TOKENS, NEXT = 6, 7, 8, 9, 10, 11, 12, 13
END, HELD_AT, KEPT_NODE, KEPT_TOKENS, KEPT_CHUNKS = 14, 15, 16, 17, 18
REQUEST_COLUMNS = 19
"""KNOWN: tokens of the prompt and those generated, of which COMPUTED are in the KV cache; the request ends at END known
ones. ROOM: tokens that fit into the blocks it holds. KEPT_*: what a preempted request left behind in the free queue."""

# request: times; negative = not yet
ARRIVED_S, SENT_S, SCHEDULED_S, FIRST_S, LAST_S, DONE_S, SEEN_S = 0, 1, 2, 3, 4, 5, 6
"""SEEN_S is when the client sees the first token; FIRST_S when the engine has produced it."""
TIME_COLUMNS = 7

# request: status
COMING, AT_GATEWAY, WAITING, RUNNING, FINISHED, SHED, LOST, REJECTED = 0, 1, 2, 3, 4, 5, 6, 7
"""REJECTED: can never fit into the KV blocks. LOST: its replica died after the first token."""

# replica: integers
N_RUNNING, N_WAITING, FREE_BLOCKS, USABLE_BLOCKS, FREE_NODE, IN_FLIGHT, BATCH_IN_FLIGHT = 0, 1, 2, 3, 4, 5, 6
OUTSTANDING_TOKENS, PHASE, TOTAL_BLOCKS, NEXT_TOTAL_BLOCKS, RESTARTS, STEPS = 7, 8, 9, 10, 11, 12
PLANNED, PURE, ALL_DECODING, NODES_USED, KEPT = 13, 14, 15, 16, 17
REPLICA_COLUMNS = 18
"""FREE_BLOCKS counts cached blocks nobody uses; it is negative while running requests hold more than is usable.
PLANNED: engine steps under way, 0 for none. PURE: they are pure decode. ALL_DECODING: no running request has prompt
left to compute or blocks to publish. FREE_NODE, NODES_USED, KEPT: bookkeeping of the nodes."""

# replica: phase
READY, DRAINING, RESTARTING, DOWN = 0, 1, 2, 3

# replica: reals
CLOCK_S, STEP_START_S, READY_AT_S, BUSY_S = 0, 1, 2, 3
HARDWARE_SCALE, WORKER_SCALE, STEP_MS, SEQUENCE_MS, ATTENTION_SCALE = 4, 5, 6, 7, 8
NEXT_STEP_MS, NEXT_ATTENTION_SCALE = 9, 10
PLAN_END_S, FIRST_STEP_S, GROWTH_S = 11, 12, 13
REPLICA_REALS = 14
"""CLOCK_S: end of the last step that is over, where those under way begin. Step i of them takes FIRST_STEP_S +
i * GROWTH_S. STEP_START_S: begin of the last step that has begun. HARDWARE_SCALE survives a restart, WORKER_SCALE does
not; NEXT_* take effect at the end of a restart."""

# settings of a replica
WEIGHT, DRAINED, CONCURRENCY_CAP, RUNNING_CAP, STEP_TOKENS_LIMIT, LONG_PREFILL, USABLE_RATIO = 0, 1, 2, 3, 4, 5, 6
REPLICA_SETTINGS = 7

# settings of the pool
POLICY, QUEUE_LIMIT, DEADLINE_RATIO, PRIORITY, BATCH_CAP = 0, 1, 2, 3, 4
POOL_SETTINGS = 5
ROUND_ROBIN, LEAST_CONNECTIONS, LEAST_TOKENS, SESSION_HASH, PREFIX_AWARE = 0, 1, 2, 3, 4
FCFS, BY_CLASS, SHORT_FIRST, CLASS_SHORT_FIRST = 0, 1, 2, 3

# constants of a run
TTFT_LIMIT_S, TTFT_LIMIT_PER_TOKEN_S, BATCH_LIMIT_S, SCRAPE_S, RESTART_S, FRONTEND_S, ASYNC_LAG, CHUNK_TOKENS = (
    0, 1, 2, 3, 4, 5, 6, 7,
)  # fmt: skip
PIN_SHARE, PIN_REPLICA, BUFFERED, SHORT_TOKENS, LOAD_BOUND, REUSE_LOST, METRICS_FROZEN = 8, 9, 10, 11, 12, 13, 14
MACRO_STEPS, PREFIX_CACHING, CHUNKED_PREFILL, RESERVE_WHOLE = 15, 16, 17, 18
WATERMARK_RATIO, ADAPTIVE_THRESHOLD = 19, 20
CONSTANTS = 21
"""From PIN_SHARE to METRICS_FROZEN without SHORT_TOKENS and LOAD_BOUND: faults that only the kernels can act out."""

# progress of the run: integers and times
NEXT_ARRIVAL, ROTATION, MUST_PUMP, SCRAPES, RELEASED, CHANGING = 0, 1, 2, 3, 4, 5
CURSORS = 6
"""RELEASED: requests whose time of arrival is settled; the others wait for the end of an earlier one (closed loop).
CHANGING: replicas that drain for a restart or are restarting."""
NOW_S, NEXT_SCRAPE_S = 0, 1
CLOCKS = 2

# what the gateway believes of a replica: own credit, and engine facts as of its last scrape plus what it sent since
CREDIT, SEEN_TOKENS, SEEN_WAITING = 0, 1, 2
BELIEFS = 3

# queue: columns of (replica or gateway, lane)
HEAD, TAIL, COUNT = 0, 1, 2
LANES = 4
"""Lane = 2 if batch, plus 1 if the prompt is long."""

# prefix cache: columns of (replica, chunk)
NODE, HITS, DEPTH, BEFORE, CHANGED_IN, SENT_IN = 0, 1, 2, 3, 4, 5
CACHE_COLUMNS = 6
"""NODE holds the chunk's blocks, -1 for none. HITS and DEPTH are kept at a chain's first chunk. The last three tell
what the gateway believes: whether it was cached BEFORE the change in scrape interval CHANGED_IN, and that the gateway
sent it itself in interval SENT_IN."""

# nodes: columns of (replica, node); the last row is the sentinel of the free queue
NEWER, OLDER, BLOCKS, KEY, REFERENCES, TWIN = 0, 1, 2, 3, 4, 5
NODE_COLUMNS = 6
"""A node stands for blocks that are freed and evicted one after the other: those of a chunk (KEY is its id), those that
preempted request q may find again (KEY is FIRST_KEPT - q), or blocks nobody can find (KEY is ANONYMOUS). TWIN: another
node with blocks of the same chunk."""
ANONYMOUS, FIRST_KEPT = -1, -2
MOST_KEPT = 4096
"""At most so many preempted requests of one replica can find blocks again."""

NEVER = 1e18

BLOCK = 16
"""Tokens per KV block."""

# meters: histograms, then counters; row of the gateway is the last
(H_TTFT, H_ITL, H_E2E, H_QUEUE, H_PREFILL, H_DECODE, H_PROMPT, H_OUTPUT, H_STEP) = (0, 1, 2, 3, 4, 5, 6, 7, 8)
HISTOGRAMS = 9
(C_PREEMPTIONS, C_PROMPT, C_GENERATION, C_QUERIED, C_HIT, C_FINISHED, C_ABORTED, C_ERRORS, C_SHED, C_ARRIVED) = (
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9,
)  # fmt: skip
COUNTERS = 10


class Tables(NamedTuple):
    """Step times in milliseconds over their grids, ascending."""

    tokens: Floats
    context_ms: Floats
    batches: Floats
    generation_ms: Floats
    contexts: Floats
    decode_attention_ms: Floats
    chunks: Floats
    cached: Floats
    prefill_attention_ms: Floats


class World(NamedTuple):
    """The whole state of a simulation. Copying every array but `chain`, `bounds` and the tables forks it.

    Attributes:
        request: (requests, REQUEST_COLUMNS).
        time_s: (requests, TIME_COLUMNS).
        think_s: (requests,) time between the end of a request and this one of the same user, in a closed loop.
        chain: chunk ids of all requests, one after another.
        replica, real: (replicas, ...).
        due_s: (replicas,) when its steps under way end, or the next one may begin; NEVER without work.
        running: (replicas, most running) request indices in the order in which they were admitted.
        granted: (replicas, most running) tokens of each running request in the step under way, unless that is PURE.
        held: node of each chunk that a request holds, from its HELD_AT on.
        queue: (replicas + 1, LANES, 3); the last row is the gateway's.
        cache: (replicas, chunks, CACHE_COLUMNS).
        node: (replicas, nodes + 1, NODE_COLUMNS).
        belief: (replicas, BELIEFS).
        replica_setting, pool_setting, constant: settings in force and constants of the run.
        cursor, clock_s: progress of the run.
        bucket: (replicas + 1, HISTOGRAMS, buckets) counts, not cumulative.
        total: (replicas + 1, HISTOGRAMS) sums of observations.
        counter: (replicas + 1, COUNTERS).
        bounds: (HISTOGRAMS, buckets) upper bounds, padded with infinity.
    """

    request: Ints
    time_s: Floats
    think_s: Floats
    chain: Ints
    replica: Ints
    real: Floats
    due_s: Floats
    running: Ints
    granted: Ints
    held: SmallInts
    queue: Ints
    cache: SmallInts
    node: SmallInts
    belief: Floats
    replica_setting: Floats
    pool_setting: Floats
    constant: Floats
    cursor: Ints
    clock_s: Floats
    bucket: Ints
    total: Floats
    counter: Ints
    bounds: Floats


def _sample(kind: object, dimensions: int) -> NDArray[Any]:
    return np.zeros(
        (1,) * dimensions, dtype=np.int64 if kind is Ints else np.int32 if kind is SmallInts else np.float64
    )


DIMENSIONS = {
    "think_s": 1,
    "chain": 1,
    "due_s": 1,
    "held": 1,
    "pool_setting": 1,
    "constant": 1,
    "cursor": 1,
    "clock_s": 1,
    "queue": 3,
    "cache": 3,
    "node": 3,
    "bucket": 3,
}
SAMPLE_WORLD = World(**{name: _sample(kind, DIMENSIONS.get(name, 2)) for name, kind in World.__annotations__.items()})
SAMPLE_TABLES = Tables(*(np.zeros((2,) * (2 if "attention" in name else 1)) for name in Tables._fields))
