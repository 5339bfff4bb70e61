"""What must hold in a simulated world at any moment."""

import numpy as np

from stack.simulator.engine import layout
from stack.simulator.engine.layout import World
from stack.simulator.simulation import Simulation

FINAL = {layout.FINISHED, layout.SHED, layout.LOST, layout.REJECTED}


def world_of(simulation: Simulation) -> World:
    return simulation._world


def queued(world: World, row: int) -> list[int]:
    """Requests in the queues of one replica or of the gateway, by walking the links."""
    found = []
    for lane in range(layout.LANES):
        q = int(world.queue[row, lane, layout.HEAD])
        for _ in range(int(world.queue[row, lane, layout.COUNT])):
            found.append(q)
            q = int(world.request[q, layout.NEXT])
    return found


def running(world: World, r: int) -> list[int]:
    return [int(q) for q in world.running[r, : world.replica[r, layout.N_RUNNING]]]


def check(simulation: Simulation) -> None:
    world = world_of(simulation)
    replicas = world.replica.shape[0]
    places: list[int] = queued(world, replicas)
    assert all(world.request[q, layout.STATUS] == layout.AT_GATEWAY for q in places)
    for r in range(replicas):
        places += check_replica(world, r)
    assert len(places) == len(set(places)), "a request is in two places"
    arrived = np.arange(int(world.cursor[layout.NEXT_ARRIVAL]))
    open_requests = {int(q) for q in arrived if int(world.request[q, layout.STATUS]) not in FINAL}
    assert open_requests == set(places), "a request is lost or served after its end"
    generated = int((world.request[:, layout.KNOWN] - world.request[:, layout.PROMPT]).sum())
    if not world.replica[:, layout.RESTARTS].any():
        assert int(world.counter[:replicas, layout.C_GENERATION].sum()) == generated


def check_replica(world: World, r: int) -> list[int]:
    """Blocks, references and counts of one replica; returns its requests."""
    replica, request = world.replica[r], world.request
    run, wait = running(world, r), queued(world, r)
    size = int(world.constant[layout.CHUNK_TOKENS]) // layout.BLOCK
    references = np.zeros(world.node.shape[1], dtype=int)
    for q in run:
        start = request[q, layout.HELD_AT]
        np.add.at(references, world.held[start : start + request[q, layout.SHARED_CHUNKS]], 1)
    assert (references == world.node[r, :, layout.REFERENCES]).all()
    used = int((references > 0).sum()) * size
    own = request[run, layout.ROOM] // layout.BLOCK - request[run, layout.SHARED_CHUNKS] * size
    assert replica[layout.FREE_BLOCKS] + int(own.sum()) + used == replica[layout.USABLE_BLOCKS], "a KV block is leaked"
    assert (own >= 0).all()
    assert (request[run, layout.ROOM] >= request[run, layout.COMPUTED]).all()
    assert (request[wait, layout.ROOM] == 0).all()
    check_nodes(world, r, {int(n) for n in np.flatnonzero(references)})
    assert replica[layout.N_WAITING] == len(wait)
    assert replica[layout.IN_FLIGHT] == len(run) + len(wait)
    assert replica[layout.BATCH_IN_FLIGHT] == request[run + wait, layout.IS_BATCH].sum()
    without_token = [q for q in run + wait if world.time_s[q, layout.FIRST_S] < 0]
    assert replica[layout.OUTSTANDING_TOKENS] == request[without_token, layout.SENT_TOKENS].sum()
    return run + wait


def free_queue(world: World, r: int) -> list[int]:
    """Nodes from the oldest to the newest, by walking the links both ways."""
    found: list[int] = []
    end = world.node.shape[1] - 1
    n = int(world.node[r, end, layout.NEWER])
    while n != end:
        assert world.node[r, world.node[r, n, layout.NEWER], layout.OLDER] == n
        found.append(n)
        n = int(world.node[r, n, layout.NEWER])
    assert len(found) == len(set(found))
    return found


def check_nodes(world: World, r: int, in_use: set[int]) -> None:
    """Every free block is in the queue once; every chunk and preempted request finds its own node and no other."""
    node, queue = world.node[r], free_queue(world, r)
    assert node[queue, layout.BLOCKS].sum() == max(0, world.replica[r, layout.FREE_BLOCKS])
    assert (node[queue, layout.BLOCKS] > 0).all()
    assert not in_use & set(queue)
    assert node.shape[0] > world.replica[r, layout.NODES_USED]
    keyed = {n for n in [*queue, *in_use] if node[n, layout.KEY] >= 0}
    found = set()
    for chunk, first in enumerate(world.cache[r, :, layout.NODE]):
        while first >= 0:
            assert node[first, layout.KEY] == chunk
            found.add(int(first))
            first = node[first, layout.TWIN]
    assert found == keyed
    kept = [n for n in queue if node[n, layout.KEY] <= layout.FIRST_KEPT]
    assert all(world.request[layout.FIRST_KEPT - node[n, layout.KEY], layout.KEPT_NODE] == n for n in kept)
    assert world.replica[r, layout.KEPT] == len(kept)


def check_drained(simulation: Simulation) -> None:
    """After the last request: every one has ended once, and nothing is held."""
    check(simulation)
    world = world_of(simulation)
    assert set(world.request[:, layout.STATUS].tolist()) <= FINAL
    assert (world.replica[:, layout.IN_FLIGHT] == 0).all()
    assert (world.replica[:, layout.FREE_BLOCKS] == world.replica[:, layout.USABLE_BLOCKS]).all()
    finished = world.request[:, layout.STATUS] == layout.FINISHED
    assert (world.request[finished, layout.KNOWN] == world.request[finished, layout.END]).all()
    counted = world.counter[-1]
    ended = [int((world.request[:, layout.STATUS] == status).sum()) for status in (layout.FINISHED, layout.SHED)]
    assert [int(counted[layout.C_FINISHED]), int(counted[layout.C_SHED])] == ended
    assert int(counted[layout.C_ARRIVED]) == len(world.request)
