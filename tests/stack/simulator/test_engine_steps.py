"""The simulated engine takes every step that vLLM 0.32's own scheduler was recorded to take."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from vllm_traces import BLOCK_TOKENS, Step, Trace, load

from stack.simulator.engine import layout
from stack.simulator.engine.kernels import available
from stack.simulator.engine.layout import SAMPLE_TABLES, World
from stack.simulator.fleet import FleetSpec
from stack.simulator.hardware.overhead import HostOverhead
from stack.simulator.load.traffic import Traffic, plain
from stack.simulator.simulation import Simulation
from stack.simulator.switches import Switches

TRACES = [trace for trace in load()[1] if trace.lag == 0]
SECOND_PER_STEP = HostOverhead(step_ms=1000.0, sequence_ms=0.0, frontend_s=0.0, async_lag=False)


def traffic_of(trace: Trace, *, shared_only: bool) -> Traffic:
    """The trace's requests; with `shared_only` a chain ends where nobody else has the same block."""
    users = Counter(block for request in trace.requests for block in request.chain)
    chains = [[block for block in request.chain if not shared_only or users[block] > 1] for request in trace.requests]
    lengths = np.array([len(chain) for chain in chains])
    made = plain(
        np.array([float(request.arrival_step) for request in trace.requests]),
        np.array([request.prompt_tokens for request in trace.requests]),
        np.array([request.output_tokens for request in trace.requests]),
    )
    ids = {block: n for n, block in enumerate(sorted(users))}
    return replace(
        made,
        chain_start=np.cumsum(lengths) - lengths,
        chain_length=lengths,
        chains=np.array([ids[block] for chain in chains for block in chain], dtype=np.int64),
        chunk_tokens=BLOCK_TOKENS,
    )


def simulation_of(trace: Trace, *, compiled: bool, shared_only: bool) -> Simulation:
    switches = trace.configuration
    fleet = FleetSpec(
        replicas=1,
        kv_blocks=switches.num_blocks - 1,
        host=SECOND_PER_STEP,
        switches=Switches(
            switches.enable_prefix_caching,
            switches.enable_chunked_prefill,
            switches.scheduler_reserve_full_isl,
            switches.watermark * switches.num_blocks / (switches.num_blocks - 1),
            switches.long_prefill_token_threshold_adaptive,
        ),
    )
    tables = SAMPLE_TABLES._replace(**{name: np.array([0.0, 1.0]) for name in ("tokens", "batches", "contexts")})
    tables = tables._replace(chunks=np.array([0.0, 1.0]), cached=np.array([0.0, 1.0]))
    simulation = Simulation(fleet, traffic_of(trace, shared_only=shared_only), step_times=tables, compiled=compiled)
    setting = simulation._world.replica_setting[0]
    setting[layout.RUNNING_CAP] = switches.max_num_active_seqs or switches.max_num_seqs
    setting[layout.STEP_TOKENS_LIMIT] = switches.max_num_batched_tokens
    setting[layout.LONG_PREFILL] = switches.long_prefill_token_threshold
    return simulation


def under_way(world: World) -> list[tuple[int, int]]:
    """(request, tokens) of the step under way."""
    replica = world.replica[0]
    n = int(replica[layout.N_RUNNING]) if replica[layout.PLANNED] else 0
    pure = replica[layout.PURE] == 1
    granted = [(int(world.running[0, i]), 1 if pure else int(world.granted[0, i])) for i in range(n)]
    return [(q, tokens) for q, tokens in granted if tokens > 0]


@pytest.mark.parametrize("shared_only", [False, True], ids=["every block has an id", "own blocks have none"])
@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=pytest.mark.skipif(not available(), reason=""))])
def test_every_step_is_vllm_s_own(compiled: bool, shared_only: bool):
    assert len(TRACES) >= 200
    for n, trace in enumerate(TRACES):
        simulation = simulation_of(trace, compiled=compiled, shared_only=shared_only)
        follow(simulation._world, simulation, trace, f"trace {n}")


def follow(world: World, simulation: Simulation, trace: Trace, name: str) -> None:
    ended: set[int] = set()
    for k, step in enumerate(trace.steps):
        simulation.advance(k + 0.5)
        assert under_way(world) == step.scheduled, f"{name}, step {k}"
        assert int(world.replica[0, layout.FREE_BLOCKS]) == step.free_blocks[0], f"{name}, step {k}"
        now = {int(q) for q in np.flatnonzero(world.request[:, layout.STATUS] == layout.FINISHED)}
        assert now - ended == finished_before(trace.steps, k), f"{name}, step {k}"
        ended = now
    simulation.advance(len(trace.steps) + 0.5)
    assert (world.request[:, layout.STATUS] == layout.FINISHED).all()
    assert int(world.counter[0, layout.C_PREEMPTIONS]) == sum(len(step.preempted) for step in trace.steps)


def finished_before(steps: list[Step], k: int) -> set[int]:
    return set(steps[k - 1].finished) if k else set()
