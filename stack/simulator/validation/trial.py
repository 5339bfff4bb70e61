"""One measured row simulated."""

import numpy as np

from stack.catalogue import setting_named
from stack.simulator.fleet import FleetSpec
from stack.simulator.hardware.overhead import EngineProfile, HostOverhead, scaled
from stack.simulator.outcomes import Outcomes, Status
from stack.simulator.simulation import Simulation
from stack.simulator.validation.case import Case
from stack.simulator.validation.figures import Figures, composed_e2e_ms, has_measured_e2e, has_medians
from stack.simulator.validation.workload import workload

DRAIN_S = 3600.0
PLAIN = EngineProfile(step_ms=0.5, sequence_ms=0.02, frontend_s=0.01, async_lag=True)
"""Typical constants, to tell from inputs alone whether a rate can be served."""
SERVED_RATIO = 0.9
"""A rate is served when at least this share of it leaves while it comes."""
NEVER_S = 1e9


def simulated_figures(case: Case, profile: EngineProfile, seed: int = 0) -> Figures:
    """The row's figures in the simulation with an engine generation's constants."""
    host = profile.host(case.family, case.gpu)
    outcomes, before = _run(case, host, seed)
    kept = slice(before, None)
    ttft_ms, itl_ms = outcomes.ttft_s[kept] * 1e3, outcomes.itl_s[kept] * 1e3
    middle = np.nanmedian if has_medians(case.row) else np.nanmean
    ttft, tpot = float(middle(ttft_ms)), float(middle(itl_ms))
    e2e = composed_e2e_ms(ttft, tpot, case.output_tokens)
    if has_measured_e2e(case.row):
        e2e = float(middle(outcomes.e2e_s[kept])) * 1e3
    return Figures(
        tpot_ms=tpot,
        ttft_ms=ttft,
        e2e_ms=e2e,
        ttft_p50_ms=float(np.nanmedian(ttft_ms)),
        ttft_p99_ms=float(np.nanpercentile(ttft_ms, 99)),
    )


def is_overloaded(case: Case) -> bool:
    """Whether an open loop's rate cannot be served, by a simulation with typical constants."""
    outcomes, before = _run(case, PLAIN.host(), 0)
    arrival_s = outcomes.arrival_s[before:]
    ended = outcomes.status == Status.FINISHED
    done_s = (outcomes.arrival_s + outcomes.e2e_s)[ended]
    middle_s, end_s = float(np.median(arrival_s)), float(arrival_s[-1])
    left = np.count_nonzero((done_s >= middle_s) & (done_s < end_s))
    return bool(left < SERVED_RATIO * np.count_nonzero((arrival_s >= middle_s) & (arrival_s < end_s)))


def _run(case: Case, host: HostOverhead, seed: int) -> tuple[Outcomes, int]:
    traffic, before = workload(case, seed)
    row = case.row
    fleet = FleetSpec(
        model=case.model,
        gpu=case.gpu,
        tensor_parallel=row.tensor_parallel,
        precision=case.precision,
        replicas=1,
        kv_blocks=case.kv_blocks,
        host=host,
        router_scrape_s=NEVER_S,
    )
    given = {"running_request_cap": row.max_num_seqs, "tokens_per_step": row.max_num_batched_tokens}
    settings = {name: {fleet.replica_names[0]: _within(name, value)} for name, value in given.items() if value}
    simulation = Simulation(fleet, traffic, step_times=scaled(case.tables, host), settings=settings)
    simulation.advance(traffic.duration_s + DRAIN_S)
    while np.isin(simulation.outcomes().status, (Status.COMING, Status.WAITING, Status.RUNNING)).any():
        simulation.advance(simulation.now_s + DRAIN_S)
    return simulation.outcomes(), before


def _within(name: str, value: float) -> float:
    """A published flag, within what the simulator's setting can take."""
    setting = setting_named(name)
    return float(np.clip(value, setting.low, setting.high))
