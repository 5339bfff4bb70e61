"""Models and GPUs the simulator knows, and how many KV blocks fit beside the weights."""

from dataclasses import dataclass

from stack.errors import InputError

BLOCK_TOKENS = 16
"""vLLM's default block size."""
MEMORY_UTILIZATION_RATIO = 0.9
"""vLLM's default `--gpu-memory-utilization`."""
RUNTIME_BYTES = 3e9
"""Activations, CUDA graphs and workspace per GPU; an assumption that gives the block counts vLLM logs within 5 %."""


@dataclass(frozen=True)
class Model:
    """Dimensions of a dense decoder, bf16.

    Attributes:
        repository: its name on the public model hub.
        weight_bytes: all weights, two bytes each.
    """

    repository: str
    weight_bytes: float
    layers: int
    kv_heads: int
    head_size: int

    @property
    def kv_bytes_per_token(self) -> int:
        """Keys and values, two bytes each, over all layers."""
        return 2 * 2 * self.layers * self.kv_heads * self.head_size


@dataclass(frozen=True)
class Gpu:
    """A GPU type.

    Attributes:
        silicon_name: its name in the measured data.
        memory_bytes: as the driver reports it.
    """

    silicon_name: str
    memory_bytes: float


MODELS = {
    "llama-3.1-8b": Model("meta-llama/Meta-Llama-3.1-8B", 16.06e9, 32, 8, 128),
    "llama-3.1-70b": Model("meta-llama/Meta-Llama-3.1-70B", 141.1e9, 80, 8, 128),
    "qwen3-8b": Model("Qwen/Qwen3-8B", 16.38e9, 36, 8, 128),
    "qwen3-32b": Model("Qwen/Qwen3-32B", 65.5e9, 64, 8, 128),
}

GPUS = {
    "h100": Gpu("h100_sxm", 81_559 * 2**20),
    "h200": Gpu("h200_sxm", 143_771 * 2**20),
}


def kv_blocks(model: str, gpu: str, tensor_parallel: int) -> int:
    """KV blocks of one replica: (0.9 memory - weights share - runtime) / bytes of a block's share, per GPU.

    Raises:
        InputError: unknown model or GPU, or the weights do not fit.
    """
    weights, kv_bytes = model_named(model).weight_bytes, model_named(model).kv_bytes_per_token
    left = gpu_named(gpu).memory_bytes * MEMORY_UTILIZATION_RATIO - weights / tensor_parallel - RUNTIME_BYTES
    blocks = int(left / (kv_bytes / tensor_parallel * BLOCK_TOKENS))
    if blocks < 1:
        raise InputError(f"{model} does not fit on {tensor_parallel} x {gpu}")
    return blocks


def model_named(name: str) -> Model:
    """The model called `name`.

    Raises:
        InputError: there is none; the text lists those that exist.
    """
    if name not in MODELS:
        raise InputError(f"no model {name!r}; known models are {', '.join(MODELS)}")
    return MODELS[name]


def gpu_named(name: str) -> Gpu:
    """The GPU called `name`.

    Raises:
        InputError: there is none; the text lists those that exist.
    """
    if name not in GPUS:
        raise InputError(f"no GPU {name!r}; known GPUs are {', '.join(GPUS)}")
    return GPUS[name]
