"""GPUs the simulator knows, and how many KV blocks fit beside a model's weights."""

from contextlib import suppress
from dataclasses import dataclass

from stack.errors import InputError
from stack.simulator.hardware.model import Model, model_of
from stack.simulator.hardware.model_files import model_file, model_names

BLOCK_TOKENS = 16
"""vLLM's default block size."""
MEMORY_UTILIZATION_RATIO = 0.9
"""vLLM's default `--gpu-memory-utilization`."""
SMALLEST_KV_SHARE = 2
"""A 16-bit KV value may be held in half its size."""
RUNTIME_BYTES = 3e9
"""Activations, CUDA graphs and workspace per GPU; an assumption that gives the block counts vLLM logs within 5 %."""


@dataclass(frozen=True)
class Gpu:
    """A GPU type.

    Attributes:
        silicon_name: its name in the measured data.
        memory_bytes: as the driver reports it.
    """

    silicon_name: str
    memory_bytes: float


GPUS = {
    "h100": Gpu("h100_sxm", 81_559 * 2**20),
    "h200": Gpu("h200_sxm", 143_771 * 2**20),
}


def kv_blocks(model: str, gpu: str, tensor_parallel: int, precision: str = "bf16") -> int:
    """KV blocks of one replica; see `blocks_of`.

    Raises:
        InputError: unknown model, GPU or precision, or the weights do not fit.
    """
    return blocks_of(model_named(model), gpu, tensor_parallel, precision)


def blocks_of(model: Model, gpu: str, tensor_parallel: int, precision: str) -> int:
    """Blocks beside the weights: (0.9 memory - weights share - runtime) / bytes of a block, all per GPU.

    Raises:
        InputError: unknown GPU or precision, or the weights do not fit.
    """
    weights = model.weight_bytes(precision)
    left = gpu_named(gpu).memory_bytes * MEMORY_UTILIZATION_RATIO - weights / tensor_parallel - RUNTIME_BYTES
    blocks = int(left / (model.kv_bytes_per_token(precision, tensor_parallel) * BLOCK_TOKENS))
    if blocks < 1:
        size = f"{weights / 1e9:.1f} GB of weights"
        raise InputError(f"{model.repository} in {precision} does not fit on {tensor_parallel} x {gpu}: {size}")
    return blocks


def most_kv_blocks(model: str, gpu: str, tensor_parallel: int, precision: str) -> int:
    """Blocks that would fill the GPUs if there were nothing else, in KV values of one byte.

    Raises:
        InputError: unknown model, GPU or precision.
    """
    block_bytes = model_named(model).kv_bytes_per_token(precision, tensor_parallel) * BLOCK_TOKENS
    return int(SMALLEST_KV_SHARE * gpu_named(gpu).memory_bytes / block_bytes)


def model_named(name: str) -> Model:
    """The model called `name`, shipped or added by the user.

    Raises:
        InputError: there is none; the text lists those that exist.
    """
    file = model_file(name)
    return model_of(file["config"], file["repository"])


def known_models() -> dict[str, Model]:
    """All models by name, but for those of the user's files that cannot be used."""
    found = {}
    for name in model_names():
        with suppress(InputError):
            found[name] = model_named(name)
    return found


def gpu_named(name: str) -> Gpu:
    """The GPU called `name`.

    Raises:
        InputError: there is none; the text lists those that exist.
    """
    if name not in GPUS:
        raise InputError(f"no GPU {name!r}; known GPUs are {', '.join(GPUS)}")
    return GPUS[name]
