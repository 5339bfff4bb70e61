"""Which blocks hold which tokens: chunks that requests share, and what preempted requests find again.

A chunk is a fixed number of tokens, usually of the prompt, whose id stands for these and all tokens before them (a hash
chain), so a cached prefix is a run of cached chunks from the chain's start. As in vLLM a chunk can be found as soon as
a step is scheduled that computes its last token. Blocks of one request alone have no ids; they only count.
"""

from stack.simulator.engine.block_pool import (
    discard,
    drop_oldest,
    forget,
    new_node,
    push,
    push_anonymous,
    push_empty,
    register,
    take,
    unlink,
)
from stack.simulator.engine.layout import (
    BEFORE,
    BLOCK,
    BLOCKS,
    CHAIN_AT,
    CHAIN_LENGTH,
    CHANGED_IN,
    CHUNK_TOKENS,
    COMPUTED,
    DEPTH,
    FIRST_KEPT,
    FREE_BLOCKS,
    HELD_AT,
    HITS,
    KEPT,
    KEPT_CHUNKS,
    KEPT_NODE,
    KEPT_TOKENS,
    KNOWN,
    MOST_KEPT,
    NEWER,
    NODE,
    PREFIX_CACHING,
    REFERENCES,
    REUSE_LOST,
    ROOM,
    SCRAPES,
    SENT_IN,
    SHARED_CHUNKS,
    World,
)


def chunk_blocks(world: World) -> int:
    """KV blocks of one chunk."""
    return int(world.constant[CHUNK_TOKENS]) // BLOCK


def caching(world: World) -> bool:
    """Whether chunks are kept and found at all."""
    return bool(world.constant[PREFIX_CACHING] > 0 and world.constant[REUSE_LOST] == 0)


def reusable(world: World, q: int) -> int:
    """Chunks that may be found in the cache at all; at least the last known token is computed."""
    if not caching(world):
        return 0
    most = (world.request[q, KNOWN] - 1) // int(world.constant[CHUNK_TOKENS])
    return int(min(world.request[q, CHAIN_LENGTH], most))


def cached_chunks(world: World, r: int, q: int) -> int:
    """Length of the cached prefix in chunks."""
    if world.request[q, CHAIN_LENGTH] == 0:
        return 0
    cache, chain = world.cache, world.chain
    n, start, most = 0, world.request[q, CHAIN_AT], reusable(world, q)
    while n < most and cache[r, chain[start + n], NODE] >= 0:
        n += 1
    return n


def believed_chunks(world: World, r: int, q: int) -> int:
    """The same as the gateway believes: as of its last scrape, plus what it sent there since."""
    cache, scrapes = world.cache, world.cursor[SCRAPES]
    n, start, most = 0, world.request[q, CHAIN_AT], reusable(world, q)
    while n < most:
        chunk = world.chain[start + n]
        cached = cache[r, chunk, NODE] >= 0
        if cache[r, chunk, CHANGED_IN] == scrapes:
            cached = cache[r, chunk, BEFORE] == 1
        if not cached and cache[r, chunk, SENT_IN] != scrapes:
            break
        n += 1
    return n


def unused_blocks(world: World, r: int, q: int, chunks: int) -> int:
    """Free blocks among those of the request's first `chunks` chunks, all of which are cached."""
    cache, chain, node = world.cache, world.chain, world.node
    blocks, start = 0, world.request[q, CHAIN_AT]
    for j in range(start, start + chunks):
        n = cache[r, chain[j], NODE]
        if node[r, n, REFERENCES] == 0:
            blocks += node[r, n, BLOCKS]
    return int(blocks)


def kept_blocks(world: World, r: int, q: int, chunks: int) -> int:
    """Free blocks that a preempted request can find again behind its first `chunks` chunks."""
    request = world.request
    n = request[q, KEPT_NODE]
    if n < 0 or request[q, KEPT_CHUNKS] != chunks:
        return 0
    whole = request[q, KEPT_TOKENS] // BLOCK - chunks * chunk_blocks(world)
    return int(max(0, min(world.node[r, n, BLOCKS], whole)))


def share(world: World, r: int, q: int, chunks: int) -> None:
    """A request starts with its first `chunks` chunks cached."""
    if chunks == 0:
        return
    request, node, cache, chain, held = world.request, world.node, world.cache, world.chain, world.held
    start, at = request[q, CHAIN_AT], request[q, HELD_AT]
    for j in range(chunks):
        n = cache[r, chain[start + j], NODE]
        references = node[r, n, REFERENCES]
        if references == 0:
            unlink(world, r, n)
            world.replica[r, FREE_BLOCKS] -= node[r, n, BLOCKS]
        node[r, n, REFERENCES] = references + 1
        held[at + j] = n
    request[q, SHARED_CHUNKS] = chunks
    first = chain[start]
    world.cache[r, first, HITS] += 1
    world.cache[r, first, DEPTH] = max(world.cache[r, first, DEPTH], chunks)


def take_kept(world: World, r: int, q: int, blocks: int) -> None:
    """A preempted request takes blocks back that it left behind; the others it left are nobody's."""
    n = world.request[q, KEPT_NODE]
    if n < 0:
        return
    world.node[r, n, BLOCKS] -= blocks
    world.replica[r, FREE_BLOCKS] -= blocks
    if world.node[r, n, BLOCKS] == 0:
        discard(world, r, n)
    else:
        forget(world, r, n)


def grow(world: World, r: int, q: int, tokens: int) -> None:
    """Blocks for the request's first `tokens` tokens, and chunks among them that others may share."""
    request = world.request
    blocks = (tokens - request[q, ROOM] + BLOCK - 1) // BLOCK
    if blocks > 0:
        take(world, r, blocks)
        request[q, ROOM] += blocks * BLOCK
    if request[q, CHAIN_LENGTH] > request[q, SHARED_CHUNKS]:
        publish(world, r, q, tokens)


def publish(world: World, r: int, q: int, tokens: int) -> None:
    """Chunks within its first `tokens` tokens become cached ones."""
    request, size = world.request, int(world.constant[CHUNK_TOKENS])
    most = min(request[q, CHAIN_LENGTH], tokens // size) if caching(world) else 0
    while request[q, SHARED_CHUNKS] < most:
        j = request[q, SHARED_CHUNKS]
        chunk = world.chain[request[q, CHAIN_AT] + j]
        n = new_node(world, r, chunk, size // BLOCK)
        world.node[r, n, REFERENCES] = 1
        register(world, r, chunk, n)
        world.held[request[q, HELD_AT] + j] = n
        request[q, SHARED_CHUNKS] = j + 1


def release(world: World, r: int, q: int, keep: bool) -> None:
    """A request gives back all its blocks, the last first; with `keep` it may find them again."""
    request, replica, node = world.request, world.replica, world.node
    shared, before = request[q, SHARED_CHUNKS], replica[r, FREE_BLOCKS]
    own = request[q, ROOM] // BLOCK - shared * chunk_blocks(world)
    full = max(0, request[q, COMPUTED] // BLOCK - shared * chunk_blocks(world))
    if world.constant[PREFIX_CACHING] == 0:
        full = 0
    push_empty(world, r, own - full)
    if keep and full > 0 and replica[r, KEPT] < MOST_KEPT:
        n = new_node(world, r, FIRST_KEPT - q, full)
        push(world, r, n)
        replica[r, KEPT] += 1
        request[q, KEPT_NODE] = n
        request[q, KEPT_TOKENS] = request[q, COMPUTED]
        request[q, KEPT_CHUNKS] = shared
    else:
        push_anonymous(world, r, full)
    freed, held, at = own, world.held, request[q, HELD_AT]
    for j in range(at + shared - 1, at - 1, -1):
        n = held[j]
        references = node[r, n, REFERENCES] - 1
        node[r, n, REFERENCES] = references
        if references == 0:
            push(world, r, n)
            freed += node[r, n, BLOCKS]
    request[q, SHARED_CHUNKS] = 0
    request[q, ROOM] = 0
    replica[r, FREE_BLOCKS] = before + freed
    drop_oldest(world, r, max(0, before) + freed - max(0, before + freed))


def clear(world: World, r: int) -> None:
    """Forget everything cached, as a restart does; nothing is in use."""
    end = world.node.shape[1] - 1
    while world.node[r, end, NEWER] != end:
        discard(world, r, world.node[r, end, NEWER])
    push_anonymous(world, r, max(0, world.replica[r, FREE_BLOCKS]))
    for chunk in range(world.cache.shape[1]):
        world.cache[r, chunk, HITS] = 0
        world.cache[r, chunk, DEPTH] = 0
