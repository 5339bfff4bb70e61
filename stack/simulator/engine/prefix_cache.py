"""KV blocks and the prefix cache: chunks with reference counts, the unused ones in a least-recently-used list.

A chunk is a fixed number of prompt tokens whose id stands for these and all tokens before them (a hash chain), so a
cached prefix is a run of resident chunks from the chain's start.
"""

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
    FREE_BLOCKS,
    HITS,
    NEWER,
    OLDER,
    PROMPT,
    REFERENCES,
    RESIDENT,
    REUSE_LOST,
    SCRAPES,
    SENT_IN,
    SHARED_CHUNKS,
    TOTAL_BLOCKS,
    UNUSED_CHUNKS,
    USABLE_BLOCKS,
    USABLE_RATIO,
    World,
)


def chunk_blocks(world: World) -> int:
    """KV blocks of one chunk."""
    return int(world.constant[CHUNK_TOKENS]) // BLOCK


def unlink(world: World, r: int, chunk: int) -> None:
    """Take a chunk out of the list of unused ones."""
    cache = world.cache
    older, newer = cache[r, chunk, OLDER], cache[r, chunk, NEWER]
    cache[r, older, NEWER] = newer
    cache[r, newer, OLDER] = older
    world.replica[r, UNUSED_CHUNKS] -= 1


def append(world: World, r: int, chunk: int) -> None:
    """Put a chunk at the most recently used end of the list of unused ones."""
    cache = world.cache
    end = cache.shape[1] - 1
    older = cache[r, end, OLDER]
    cache[r, older, NEWER] = chunk
    cache[r, chunk, OLDER] = older
    cache[r, chunk, NEWER] = end
    cache[r, end, OLDER] = chunk
    world.replica[r, UNUSED_CHUNKS] += 1


def set_resident(world: World, r: int, chunk: int, value: int) -> None:
    """Note a change together with what held at the gateway's last scrape."""
    cache, scrapes = world.cache, world.cursor[SCRAPES]
    if cache[r, chunk, CHANGED_IN] != scrapes:
        cache[r, chunk, BEFORE] = cache[r, chunk, RESIDENT]
        cache[r, chunk, CHANGED_IN] = scrapes
    cache[r, chunk, RESIDENT] = value


def evict(world: World, r: int) -> None:
    """Drop unused chunks, the least recently used first, until what is left of them fits into the free blocks."""
    replica, cache = world.replica, world.cache
    size = chunk_blocks(world)
    end = cache.shape[1] - 1
    while replica[r, UNUSED_CHUNKS] > 0 and replica[r, UNUSED_CHUNKS] * size > replica[r, FREE_BLOCKS]:
        chunk = cache[r, end, NEWER]
        unlink(world, r, chunk)
        set_resident(world, r, chunk, 0)


def clear(world: World, r: int) -> None:
    """Forget every unused chunk, as a restart does."""
    end = world.cache.shape[1] - 1
    while world.replica[r, UNUSED_CHUNKS] > 0:
        chunk = world.cache[r, end, NEWER]
        unlink(world, r, chunk)
        set_resident(world, r, chunk, 0)
    for chunk in range(end):
        world.cache[r, chunk, HITS] = 0
        world.cache[r, chunk, DEPTH] = 0


def resize(world: World, r: int) -> None:
    """Apply the usable share of the KV blocks; running requests that no longer fit are preempted as they grow."""
    replica = world.replica
    usable = int(replica[r, TOTAL_BLOCKS] * world.replica_setting[r, USABLE_RATIO])
    replica[r, FREE_BLOCKS] += usable - replica[r, USABLE_BLOCKS]
    replica[r, USABLE_BLOCKS] = usable
    evict(world, r)


def reusable(world: World, q: int) -> int:
    """Chunks of the prompt that may be shared at all."""
    if world.constant[REUSE_LOST] > 0:
        return 0
    return int(world.request[q, CHAIN_LENGTH])


def cached_chunks(world: World, r: int, q: int) -> int:
    """Length of the cached prefix in chunks."""
    n, start, most = 0, world.request[q, CHAIN_AT], reusable(world, q)
    while n < most and world.cache[r, world.chain[start + n], RESIDENT] == 1:
        n += 1
    return n


def believed_chunks(world: World, r: int, q: int) -> int:
    """The same as the gateway believes: as of its last scrape, plus what it sent there since."""
    cache, scrapes = world.cache, world.cursor[SCRAPES]
    n, start, most = 0, world.request[q, CHAIN_AT], reusable(world, q)
    while n < most:
        chunk = world.chain[start + n]
        column = BEFORE if cache[r, chunk, CHANGED_IN] == scrapes else RESIDENT
        if cache[r, chunk, column] == 0 and cache[r, chunk, SENT_IN] != scrapes:
            break
        n += 1
    return n


def unused_among(world: World, r: int, q: int, chunks: int) -> int:
    """How many of the request's first `chunks` chunks nobody uses at present."""
    n, start = 0, world.request[q, CHAIN_AT]
    for j in range(chunks):
        if world.cache[r, world.chain[start + j], REFERENCES] == 0:
            n += 1
    return n


def take(world: World, r: int, chunk: int) -> None:
    """One more request uses a resident chunk."""
    if world.cache[r, chunk, REFERENCES] == 0:
        unlink(world, r, chunk)
        world.replica[r, FREE_BLOCKS] -= chunk_blocks(world)
    world.cache[r, chunk, REFERENCES] += 1


def share(world: World, r: int, q: int, chunks: int) -> None:
    """A request starts with its first `chunks` chunks cached."""
    start = world.request[q, CHAIN_AT]
    for j in range(chunks):
        take(world, r, world.chain[start + j])
    world.request[q, SHARED_CHUNKS] = chunks
    if chunks > 0:
        first = world.chain[start]
        world.cache[r, first, HITS] += 1
        world.cache[r, first, DEPTH] = max(world.cache[r, first, DEPTH], chunks)


def publish(world: World, r: int, q: int) -> None:
    """Chunks of the prompt computed by now become cached ones, which others may share."""
    request, replica, cache = world.request, world.replica, world.cache
    size, tokens, most = chunk_blocks(world), int(world.constant[CHUNK_TOKENS]), reusable(world, q)
    done = min(request[q, COMPUTED], request[q, PROMPT])
    while request[q, SHARED_CHUNKS] < most and (request[q, SHARED_CHUNKS] + 1) * tokens <= done:
        chunk = world.chain[request[q, CHAIN_AT] + request[q, SHARED_CHUNKS]]
        if cache[r, chunk, RESIDENT] == 0:
            set_resident(world, r, chunk, 1)
            cache[r, chunk, REFERENCES] = 1
        else:
            replica[r, FREE_BLOCKS] += size
            take(world, r, chunk)
        request[q, BLOCKS] -= size
        request[q, SHARED_CHUNKS] += 1


def release(world: World, r: int, q: int) -> None:
    """A request gives back all its blocks; chunks nobody uses any more stay cached until evicted."""
    request, replica, cache = world.request, world.replica, world.cache
    size, start = chunk_blocks(world), request[q, CHAIN_AT]
    for j in range(request[q, SHARED_CHUNKS] - 1, -1, -1):
        chunk = world.chain[start + j]
        cache[r, chunk, REFERENCES] -= 1
        if cache[r, chunk, REFERENCES] == 0:
            append(world, r, chunk)
            replica[r, FREE_BLOCKS] += size
    request[q, SHARED_CHUNKS] = 0
    replica[r, FREE_BLOCKS] += request[q, BLOCKS]
    request[q, BLOCKS] = 0
    evict(world, r)
