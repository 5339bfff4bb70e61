"""The free KV blocks in the order in which they will be taken: oldest first, as vLLM's free queue holds them.

A free block keeps what it cached until it is taken, so the order of this queue is the cache's eviction order. Blocks
that enter together stay together in one node. Those of a request enter last block first, so a prefix outlives what
follows it and a node loses blocks at its far end only. A block that was not filled caches nothing and is taken first.
"""

from stack.simulator.engine.layout import (
    ANONYMOUS,
    BEFORE,
    BLOCKS,
    CHANGED_IN,
    FIRST_KEPT,
    FREE_BLOCKS,
    FREE_NODE,
    KEPT,
    KEPT_NODE,
    KEY,
    NEWER,
    NODE,
    NODES_USED,
    OLDER,
    REFERENCES,
    SCRAPES,
    TOTAL_BLOCKS,
    TWIN,
    USABLE_BLOCKS,
    USABLE_RATIO,
    World,
)


def new_node(world: World, r: int, key: int, blocks: int) -> int:
    """A node outside the queue."""
    replica, node = world.replica, world.node
    n = replica[r, FREE_NODE]
    if n >= 0:
        replica[r, FREE_NODE] = node[r, n, NEWER]
    else:
        n = replica[r, NODES_USED]
        replica[r, NODES_USED] += 1
    node[r, n, KEY] = key
    node[r, n, BLOCKS] = blocks
    node[r, n, REFERENCES] = 0
    node[r, n, TWIN] = -1
    return int(n)


def unlink(world: World, r: int, n: int) -> None:
    """Take a node out of the queue."""
    node = world.node
    older, newer = node[r, n, OLDER], node[r, n, NEWER]
    node[r, older, NEWER] = newer
    node[r, newer, OLDER] = older


def link(world: World, r: int, older: int, n: int, newer: int) -> None:
    """Put a node between two neighbours in the queue."""
    node = world.node
    node[r, older, NEWER] = n
    node[r, n, OLDER] = older
    node[r, n, NEWER] = newer
    node[r, newer, OLDER] = n


def push(world: World, r: int, n: int) -> None:
    """Put a node at the queue's newest end."""
    end = world.node.shape[1] - 1
    link(world, r, world.node[r, end, OLDER], n, end)


def push_anonymous(world: World, r: int, blocks: int) -> None:
    """Blocks that nobody can find again, at the newest end."""
    node = world.node
    end = node.shape[1] - 1
    newest = node[r, end, OLDER]
    if newest != end and node[r, newest, KEY] == ANONYMOUS:
        node[r, newest, BLOCKS] += blocks
    elif blocks > 0:
        push(world, r, new_node(world, r, ANONYMOUS, blocks))


def push_empty(world: World, r: int, blocks: int) -> None:
    """Blocks that cache nothing, at the oldest end."""
    node = world.node
    end = node.shape[1] - 1
    oldest = node[r, end, NEWER]
    if oldest != end and node[r, oldest, KEY] == ANONYMOUS:
        node[r, oldest, BLOCKS] += blocks
    elif blocks > 0:
        link(world, r, end, new_node(world, r, ANONYMOUS, blocks), oldest)


def drop_oldest(world: World, r: int, blocks: int) -> None:
    """Take that many blocks off the queue's oldest end; what they cached is gone."""
    node = world.node
    end = node.shape[1] - 1
    while blocks > 0:
        oldest = node[r, end, NEWER]
        has = node[r, oldest, BLOCKS]
        if has > blocks:
            if node[r, oldest, KEY] >= 0:
                forget(world, r, oldest)
            node[r, oldest, BLOCKS] -= blocks
            return
        blocks -= has
        discard(world, r, oldest)


def discard(world: World, r: int, n: int) -> None:
    """Take a node out of the queue for good."""
    forget(world, r, n)
    unlink(world, r, n)
    world.node[r, n, NEWER] = world.replica[r, FREE_NODE]
    world.replica[r, FREE_NODE] = n


def forget(world: World, r: int, n: int) -> None:
    """Nobody finds the node's blocks any more."""
    key = world.node[r, n, KEY]
    if key >= 0:
        unregister(world, r, key, n)
    elif key <= FIRST_KEPT:
        world.request[FIRST_KEPT - key, KEPT_NODE] = -1
        world.replica[r, KEPT] -= 1
    world.node[r, n, KEY] = ANONYMOUS


def register(world: World, r: int, chunk: int, n: int) -> None:
    """The node holds the chunk from now on; the node that held it before, if any, is found first."""
    node, first = world.node, world.cache[r, chunk, NODE]
    if first < 0:
        set_node(world, r, chunk, n)
        return
    while node[r, first, TWIN] >= 0:
        first = node[r, first, TWIN]
    node[r, first, TWIN] = n


def unregister(world: World, r: int, chunk: int, n: int) -> None:
    """The node does not hold the chunk any more."""
    node, first = world.node, world.cache[r, chunk, NODE]
    if first == n:
        set_node(world, r, chunk, node[r, n, TWIN])
        return
    while node[r, first, TWIN] != n:
        first = node[r, first, TWIN]
    node[r, first, TWIN] = node[r, n, TWIN]


def set_node(world: World, r: int, chunk: int, n: int) -> None:
    """Note a change together with what held at the gateway's last scrape."""
    cache, scrapes = world.cache, world.cursor[SCRAPES]
    if cache[r, chunk, CHANGED_IN] != scrapes:
        cache[r, chunk, BEFORE] = 1 if cache[r, chunk, NODE] >= 0 else 0
        cache[r, chunk, CHANGED_IN] = scrapes
    cache[r, chunk, NODE] = n


def take(world: World, r: int, blocks: int) -> None:
    """Allocate free blocks; the caller has made sure that there are enough."""
    world.replica[r, FREE_BLOCKS] -= blocks
    drop_oldest(world, r, blocks)


def resize(world: World, r: int) -> None:
    """Apply the usable share of the KV blocks; running requests that no longer fit are preempted as they grow."""
    replica = world.replica
    usable = int(replica[r, TOTAL_BLOCKS] * world.replica_setting[r, USABLE_RATIO])
    before = max(0, replica[r, FREE_BLOCKS])
    replica[r, FREE_BLOCKS] += usable - replica[r, USABLE_BLOCKS]
    replica[r, USABLE_BLOCKS] = usable
    after = max(0, replica[r, FREE_BLOCKS])
    if after > before:
        push_anonymous(world, r, after - before)
    else:
        drop_oldest(world, r, before - after)
