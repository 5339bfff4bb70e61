"""The fastest a replica could be if nothing but its hardware limited it.

Only what is certain is counted, so that the bound holds for every engine: linear weights once per step, the KV values
of all users, and the arithmetic of prompts. Experts are not counted, as how many are touched is not known.
"""

from dataclasses import dataclass

from stack.simulator.hardware.gpu import model_named
from stack.simulator.hardware.precision import precision_named
from stack.simulator.validation.figures import Figures


@dataclass(frozen=True)
class Peak:
    """Of one GPU, dense.

    Attributes:
        bytes_per_s: memory.
        sixteen_bit_per_s, eight_bit_per_s: arithmetic operations.
    """

    bytes_per_s: float
    sixteen_bit_per_s: float
    eight_bit_per_s: float


PEAKS = {
    "h100": Peak(3.35e12, 989e12, 1979e12),
    "h200": Peak(4.8e12, 989e12, 1979e12),
}
"""NVIDIA's data sheets of the SXM modules, without sparsity."""
REACHED = 0.92
"""Share of its peaks that no kernel exceeds; the best in the step-time tables reads memory at 0.91."""


@dataclass(frozen=True)
class ClosedLoop:
    """What a replica is asked to do.

    Attributes:
        users: requests at any time.
    """

    model: str
    gpu: str
    precision: str
    tensor_parallel: int
    users: float
    prompt_tokens: float
    output_tokens: float


def is_impossible(load: ClosedLoop, measured: Figures) -> bool:
    """Whether the measured TPOT is below what the hardware allows.

    In a closed loop, users over E2E is the rate of requests (Little's law), so prompts take a known share of the
    arithmetic peak; what is left of each TPOT must suffice to read weights and KV values.
    """
    rate_per_s = load.users / (measured.e2e_ms * 1e-3)
    left_ms = measured.tpot_ms * (1.0 - rate_per_s * load.prompt_tokens * prompt_token_s(load))
    return left_ms < decode_floor_ms(load)


def prompt_token_s(load: ClosedLoop) -> float:
    """Seconds of a prompt token's arithmetic: two operations per linear weight."""
    peak, eight_bit = PEAKS[load.gpu], precision_named(load.precision).linear_bytes < 2
    per_s = peak.eight_bit_per_s if eight_bit else peak.sixteen_bit_per_s
    return 2 * model_named(load.model).linear / (REACHED * per_s * load.tensor_parallel)


def decode_floor_ms(load: ClosedLoop) -> float:
    """Milliseconds to read linear weights and KV values of all users once; KV in 8 bits where weights are."""
    model, held = model_named(load.model), precision_named(load.precision)
    weights = model.linear * held.linear_bytes / load.tensor_parallel
    per_token = model.kv_bytes_per_token(load.precision, load.tensor_parallel)
    if held.linear_bytes < 2:
        per_token //= held.kv_bytes
    context = load.prompt_tokens + load.output_tokens / 2
    return (weights + load.users * context * per_token) / (REACHED * PEAKS[load.gpu].bytes_per_s) * 1e3
