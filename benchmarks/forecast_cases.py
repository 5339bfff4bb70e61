"""Random stacks, loads, hidden errors, faults and changes, on which a forecast can be tried; one case per seed."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from forecast_changes import random_settings

from harness.objective import Slo
from stack.simulator.capacity import capacity_per_s
from stack.simulator.engine.layout import Tables
from stack.simulator.faults.fault import FAULTS, Fault, Nature
from stack.simulator.fleet import FleetSpec
from stack.simulator.hardware.overhead import HostOverhead
from stack.simulator.load.files import read_traffic
from stack.simulator.load.generated import poisson, with_shared_prefixes
from stack.simulator.load.traffic import Traffic, merged, plain
from stack.simulator.simulation import Simulation

DECISION_S = 480.0
"""When the change is tried; before it the load was watched for eight minutes."""
AFTER_S = 480.0
"""Traffic after the decision, for the longest horizon."""
STACKS = (
    ("llama-3.1-8b", "h100", 1),
    ("llama-3.1-8b", "h200", 1),
    ("qwen3-8b", "h100", 1),
    ("qwen3-8b", "h200", 1),
    ("qwen3-32b", "h100", 2),
    ("llama-3.1-70b", "h100", 4),
    ("llama-3.1-70b", "h200", 2),
    ("llama-3.1-70b", "h200", 4),
)
SMALL = frozenset({"llama-3.1-8b", "qwen3-8b"})
LENGTHS = {
    "chat": (900, 0.8, 130, 0.8),
    "azure_code": (1900, 0.9, 13, 0.9),
    "azure_conversation": (1020, 0.9, 150, 0.7),
    "documents": (5000, 0.5, 200, 0.6),
    "long_answers": (400, 0.8, 500, 0.7),
}
"""Log-normal prompt and answer lengths (median, sigma); the Azure ones near the published medians of 2023."""
ARRIVALS = ("steady", "steady", "steady", "bursty", "bursty", "ramp", "waves")


@dataclass(frozen=True)
class Case:
    """A hidden stack just before its first request, and the change to be tried at `DECISION_S`."""

    seed: int
    simulation: Simulation
    slo: Slo
    words: str
    load: float
    fault: str
    rng: np.random.Generator


def case_of(seed: int, traces: Path | None = None, future: int = 0) -> Case:
    """The case of one seed.

    Args:
        traces: folder with the Azure traces of 2023, whose lengths then stand in two of the five mixes.
        future: 0 for the future that is forecast; others share the past, and what comes is shuffled.
    """
    rng = np.random.default_rng([seed, 20_261_130])
    model, gpu, parallel = STACKS[rng.integers(len(STACKS))]
    per_token = 1e-4 if model in SMALL else 1 / 3000
    fleet = FleetSpec(
        model=model,
        gpu=gpu,
        tensor_parallel=parallel,
        replicas=int(rng.integers(2, 9)),
        ttft_limit_s_per_token=per_token,
    )
    slo = Slo(ttft_s_per_prompt_token=per_token)
    load = float(rng.uniform(0.3, 1.1))
    traffic, words = _traffic(fleet, slo, load, rng, traces)
    if future:
        traffic = _another_future(traffic, np.random.default_rng([seed, future]))
    fault = _fault(rng)
    hidden = replace(fleet, host=_host(fleet.overhead, rng))
    simulation = Simulation(
        hidden,
        traffic,
        faults=[] if fault is None else [fault],
        seed=seed,
        step_times=_step_times(fleet, rng),
        step_scale=list(rng.lognormal(0.0, 0.03, fleet.replicas)),
        settings=random_settings(fleet, rng),
    )
    stack = f"{model} {gpu} x{parallel} {fleet.replicas} replicas, {words}"
    return Case(seed, simulation, slo, stack, load, "none" if fault is None else fault.name, rng)


def _another_future(traffic: Traffic, rng: np.random.Generator) -> Traffic:
    """The same past; after the decision the same gaps and the same requests in another order."""
    first = int(np.searchsorted(traffic.arrival_s, DECISION_S))
    gaps = rng.permutation(np.diff(traffic.arrival_s[first - 1 :]))
    times = np.concatenate([traffic.arrival_s[:first], traffic.arrival_s[first - 1] + np.cumsum(gaps)])
    index = np.concatenate([np.arange(first), first + rng.permutation(len(traffic) - first)])
    return traffic.take(index, np.maximum(times, np.where(np.arange(len(times)) < first, 0, DECISION_S)))


def _off(rng: np.random.Generator) -> float:
    """A factor that is 10 to 30 % off, either way."""
    return float(1 + rng.choice([-1, 1]) * rng.uniform(0.1, 0.3))


def _step_times(fleet: FleetSpec, rng: np.random.Generator) -> Tables:
    """Kernels off by one common factor, and prefill against decode by up to a tenth besides."""
    tables, common, tilt = fleet.step_times, _off(rng), rng.uniform(0.95, 1.05)
    prefill, decode = common * tilt, common / tilt
    return tables._replace(
        context_ms=tables.context_ms * prefill,
        prefill_attention_ms=tables.prefill_attention_ms * prefill,
        generation_ms=tables.generation_ms * decode,
        decode_attention_ms=tables.decode_attention_ms * decode,
    )


def _host(usual: HostOverhead, rng: np.random.Generator) -> HostOverhead:
    step, sequence = rng.lognormal(0.0, 0.5), rng.lognormal(0.0, 0.3)
    return replace(usual, step_ms=usual.step_ms * step, sequence_ms=usual.sequence_ms * sequence)


def _fault(rng: np.random.Generator) -> Fault | None:
    names = [name for name, kind in FAULTS.items() if kind.nature is not Nature.METRICS]
    if rng.random() < 0.5:
        return None
    return Fault(names[rng.integers(len(names))], DECISION_S - float(rng.uniform(60, 300)))


def _traffic(
    fleet: FleetSpec, slo: Slo, load: float, rng: np.random.Generator, traces: Path | None
) -> tuple[Traffic, str]:
    kind = list(LENGTHS)[rng.integers(len(LENGTHS))]
    prompts, outputs = _lengths(kind, 6000, rng)
    if traces is not None and kind.startswith("azure"):
        recorded = read_traffic(traces / ("azure2023_code.csv" if kind == "azure_code" else "azure2023_conv.csv"))
        prompts, outputs = recorded.prompt_tokens[:6000], recorded.output_tokens[:6000]
    sample = plain(np.arange(len(prompts), dtype=float), prompts, outputs)
    rate = load * capacity_per_s(fleet, sample, slo)
    shape = ARRIVALS[rng.integers(len(ARRIVALS))]
    traffic = _arrivals(shape, rate, sample, rng)
    words = f"{kind} {shape} load {load:.2f} {rate:.1f}/s"
    if rng.random() < 0.25:
        prefixes, chunks = int(rng.integers(4, 120)), int(rng.integers(1, 5))
        traffic = with_shared_prefixes(traffic, prefixes=prefixes, chunks=chunks, seed=int(rng.integers(1 << 30)))
        words += f", {prefixes} prefixes of {chunks} chunks"
    if rng.random() < 0.2:
        traffic = merged(traffic, _batch(rate, rng))
        words += ", with batch"
    return traffic, words


def _lengths(kind: str, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    prompt, prompt_sigma, output, output_sigma = LENGTHS[kind]
    prompts = np.clip(rng.lognormal(np.log(prompt), prompt_sigma, n), 8, 20_000).astype(np.int64)
    outputs = np.clip(rng.lognormal(np.log(output), output_sigma, n), 1, 3_000).astype(np.int64)
    return prompts, outputs


def _arrivals(shape: str, rate: float, lengths: Traffic, rng: np.random.Generator) -> Traffic:
    whole_s, seed = DECISION_S + AFTER_S, int(rng.integers(1 << 30))
    if shape == "bursty":
        gamma = 1 / rng.uniform(2, 6)
        times = np.cumsum(rng.gamma(gamma, 1 / (rate * gamma), int(2 * rate * whole_s) + 50))
        times = times[times < whole_s]
        index = rng.integers(len(lengths), size=len(times))
        return plain(times, lengths.prompt_tokens[index], lengths.output_tokens[index])
    slope, period_s, phase = rng.uniform(-0.3, 0.3), rng.uniform(60, 300), rng.uniform(0, 2 * np.pi)

    def per_s(t: np.ndarray) -> np.ndarray:
        if shape == "ramp":
            return rate * (1 + slope * (t - DECISION_S) / DECISION_S)
        if shape == "waves":
            return rate * (1 + 0.3 * np.sin(2 * np.pi * t / period_s + phase))
        return np.full(len(t), rate)

    return poisson(per_s, 1.35 * rate, whole_s, seed=seed, lengths=lengths)


def _batch(rate: float, rng: np.random.Generator) -> Traffic:
    """A tenth of the requests as steady batch work, four times as long."""
    n = max(1, rng.poisson(0.1 * rate * (DECISION_S + AFTER_S)))
    prompts, outputs = _lengths("documents", n, rng)
    return plain(np.sort(rng.random(n)) * (DECISION_S + AFTER_S), prompts, outputs, is_batch=True)
