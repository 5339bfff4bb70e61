"""A new world from a fleet and its traffic, and copies of one."""

import numpy as np

from stack.reading import Distribution
from stack.simulator.engine import layout
from stack.simulator.engine.layout import Floats, World
from stack.simulator.fleet import FleetSpec
from stack.simulator.load.traffic import Traffic

MOST_RUNNING = 4096
"""Upper bound of the running-request cap in the catalogue."""
MOST_BLOCKS_RATIO = 2
"""KV values of half the size double the blocks."""
SHORT_PROMPT_TOKENS = 2_000
"""Border between short and long prompts for short-first priority."""
LOAD_BOUND = 1.25
"""A replica takes at most this multiple of its fair share before a session goes to the next one."""

_LATENCY_S = (
    0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0, 240.0, 480.0, 960.0,
    1920.0, 7680.0,
)  # fmt: skip
_LENGTHS = tuple(float(digit * 10**power) for power in range(6) for digit in (1, 2, 5) if digit * 10**power <= 100_000)
BUCKETS: dict[Distribution, tuple[float, ...]] = {
    Distribution.TTFT_S: (
        0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0,
        160.0, 640.0, 2560.0,
    ),
    Distribution.ITL_S: (
        0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0,
    ),
    Distribution.E2E_S: _LATENCY_S,
    Distribution.QUEUE_S: _LATENCY_S,
    Distribution.PREFILL_S: _LATENCY_S,
    Distribution.DECODE_S: _LATENCY_S,
    Distribution.PROMPT_TOKENS: _LENGTHS,
    Distribution.OUTPUT_TOKENS: _LENGTHS,
    Distribution.STEP_TOKENS: (1.0, 8.0, *(float(2**power) for power in range(4, 15))),
}  # fmt: skip
"""vLLM's own bucket bounds without infinity, in the order of the kernels' histograms."""


def new_world(fleet: FleetSpec, traffic: Traffic) -> World:
    """The world before its first request, every setting at its default."""
    n, replicas = len(traffic), fleet.replicas
    world = World(
        request=_requests(traffic),
        time_s=np.full((n, layout.TIME_COLUMNS), -1.0),
        think_s=traffic.think_s.copy() if traffic.users else np.zeros(1),
        chain=np.array(traffic.chains if len(traffic.chains) else [0], dtype=np.int64),
        replica=np.zeros((replicas, layout.REPLICA_COLUMNS), dtype=np.int64),
        real=np.zeros((replicas, layout.REPLICA_REALS)),
        due_s=np.full(replicas, layout.NEVER),
        running=np.zeros((replicas, MOST_RUNNING + 1), dtype=np.int64),
        granted=np.zeros((replicas, MOST_RUNNING + 1), dtype=np.int64),
        held=np.zeros(max(1, int(traffic.chain_length.sum())), dtype=np.int32),
        queue=np.zeros((replicas + 1, layout.LANES, 3), dtype=np.int64),
        cache=_cache(replicas, traffic.chunks),
        node=_nodes(fleet, traffic),
        belief=np.zeros((replicas, layout.BELIEFS)),
        replica_setting=np.zeros((replicas, layout.REPLICA_SETTINGS)),
        pool_setting=np.zeros(layout.POOL_SETTINGS),
        constant=_constants(fleet, traffic),
        cursor=_cursors(traffic),
        clock_s=np.array([0.0, fleet.router_scrape_s]),
        bucket=np.zeros((replicas + 1, layout.HISTOGRAMS, _bounds().shape[1]), dtype=np.int64),
        total=np.zeros((replicas + 1, layout.HISTOGRAMS)),
        counter=np.zeros((replicas + 1, layout.COUNTERS), dtype=np.int64),
        bounds=_bounds(),
    )
    world.time_s[:, layout.ARRIVED_S] = traffic.arrival_s
    _start_replicas(world, fleet)
    return world


def forked(world: World) -> World:
    """An independent copy; what never changes is shared."""
    shared = {"chain", "bounds", "think_s"}
    return World(**{name: array if name in shared else array.copy() for name, array in world._asdict().items()})


def _cursors(traffic: Traffic) -> layout.Ints:
    cursor = np.zeros(layout.CURSORS, dtype=np.int64)
    cursor[layout.RELEASED] = traffic.users or len(traffic)
    return cursor


def _requests(traffic: Traffic) -> layout.Ints:
    table = np.zeros((len(traffic), layout.REQUEST_COLUMNS), dtype=np.int64)
    table[:, layout.PROMPT] = traffic.prompt_tokens
    table[:, layout.KNOWN] = traffic.prompt_tokens
    table[:, layout.OUTPUT] = traffic.output_tokens
    table[:, layout.END] = traffic.prompt_tokens + traffic.output_tokens
    table[:, layout.IS_BATCH] = traffic.is_batch
    table[:, layout.SESSION] = traffic.session
    table[:, layout.CHAIN_AT] = traffic.chain_start
    table[:, layout.CHAIN_LENGTH] = traffic.chain_length
    table[:, layout.HELD_AT] = np.cumsum(traffic.chain_length) - traffic.chain_length
    table[:, [layout.REPLICA, layout.NEXT, layout.KEPT_NODE]] = -1
    return table


def _cache(replicas: int, chunks: int) -> layout.SmallInts:
    table = np.zeros((replicas, max(1, chunks), layout.CACHE_COLUMNS), dtype=np.int32)
    table[:, :, [layout.NODE, layout.CHANGED_IN, layout.SENT_IN]] = -1
    return table


def _nodes(fleet: FleetSpec, traffic: Traffic) -> layout.SmallInts:
    """All blocks free and empty, in the first node; the last row is the sentinel.

    A node outside the cached ones is followed by a cached one or merged with its neighbour, which bounds their number.
    """
    blocks = MOST_BLOCKS_RATIO * fleet.blocks_per_replica
    cached = blocks // (traffic.chunk_tokens // layout.BLOCK) if traffic.chunks else 0
    n = min(blocks, 2 * (cached + layout.MOST_KEPT) + 1)
    table = np.zeros((fleet.replicas, n + 1, layout.NODE_COLUMNS), dtype=np.int32)
    table[:, n, [layout.NEWER, layout.OLDER]] = 0
    table[:, 0, [layout.NEWER, layout.OLDER]] = n
    table[:, 0, layout.BLOCKS] = fleet.blocks_per_replica
    table[:, 0, layout.KEY] = layout.ANONYMOUS
    return table


def _constants(fleet: FleetSpec, traffic: Traffic) -> Floats:
    host, switches, constant = fleet.overhead, fleet.switches, np.zeros(layout.CONSTANTS)
    constant[layout.TTFT_LIMIT_S] = fleet.ttft_limit_s
    constant[layout.TTFT_LIMIT_PER_TOKEN_S] = fleet.ttft_limit_s_per_token
    constant[layout.BATCH_LIMIT_S] = fleet.batch_limit_s
    constant[layout.SCRAPE_S] = fleet.router_scrape_s
    constant[layout.RESTART_S] = fleet.restart_s
    constant[layout.FRONTEND_S] = host.frontend_s
    constant[layout.ASYNC_LAG] = host.async_lag
    constant[layout.SHORT_TOKENS] = SHORT_PROMPT_TOKENS
    constant[layout.LOAD_BOUND] = LOAD_BOUND
    constant[layout.CHUNK_TOKENS] = traffic.chunk_tokens
    constant[layout.PREFIX_CACHING] = switches.prefix_caching
    constant[layout.CHUNKED_PREFILL] = switches.chunked_prefill
    constant[layout.RESERVE_WHOLE] = switches.reserve_whole_prompt
    constant[layout.WATERMARK_RATIO] = switches.watermark_ratio
    constant[layout.ADAPTIVE_THRESHOLD] = switches.adaptive_long_prefill
    return constant


def _bounds() -> Floats:
    longest = max(len(bounds) for bounds in BUCKETS.values()) + 1
    return np.array([[*bounds, *[np.inf] * (longest - len(bounds))] for bounds in BUCKETS.values()])


def _start_replicas(world: World, fleet: FleetSpec) -> None:
    host, blocks = fleet.overhead, fleet.blocks_per_replica
    columns = (layout.FREE_BLOCKS, layout.USABLE_BLOCKS, layout.TOTAL_BLOCKS, layout.NEXT_TOTAL_BLOCKS)
    world.replica[:, columns] = blocks
    world.replica[:, layout.FREE_NODE] = -1
    world.replica[:, layout.NODES_USED] = 1
    scales = (layout.HARDWARE_SCALE, layout.WORKER_SCALE, layout.ATTENTION_SCALE, layout.NEXT_ATTENTION_SCALE)
    world.real[:, scales] = 1.0
    world.real[:, [layout.STEP_MS, layout.NEXT_STEP_MS]] = host.step_ms
    world.real[:, layout.SEQUENCE_MS] = host.sequence_ms
    world.real[:, layout.STEP_START_S] = -1.0
