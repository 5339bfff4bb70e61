"""In which numbers weights and KV values are held, and which kernels compute with them."""

from collections.abc import Mapping
from dataclasses import dataclass

from stack.errors import InputError


@dataclass(frozen=True)
class Precision:
    """One way to hold a model.

    Attributes:
        meaning: for people.
        linear_bytes, expert_bytes: per weight of the linear layers and of a mixture's experts, scales included;
            embeddings and the router always take two.
        kv_bytes: per KV value.
        padded_to: experts' inputs are widened in memory to a multiple of this.
        kernels: names of the measured kernels: linear layers, experts, KV values.
    """

    meaning: str
    linear_bytes: float
    expert_bytes: float
    kv_bytes: int
    kernels: tuple[str, str, str]
    padded_to: int = 1


BLOCK_SCALE_BYTES = 4 / 128**2
"""One 32-bit scale per block of 128 x 128 weights."""

PRECISIONS: Mapping[str, Precision] = {
    "bf16": Precision("16-bit weights and KV", 2, 2, 2, ("bfloat16", "bfloat16", "bfloat16")),
    "fp8": Precision("FP8 weights, one static scale per tensor", 1, 1, 2, ("fp8_static", "fp8", "bfloat16")),
    "fp8_kv": Precision("FP8 weights as in fp8, and FP8 KV", 1, 1, 1, ("fp8_static", "fp8", "fp8")),
    "fp8_block": Precision(
        "FP8 weights, a scale per 128 x 128",
        1 + BLOCK_SCALE_BYTES,
        1 + BLOCK_SCALE_BYTES,
        2,
        ("fp8_block", "fp8_block", "bfloat16"),
    ),
    "mxfp4": Precision(
        "4-bit experts, a scale per 32, the rest 16-bit",
        2,
        0.5 + 1 / 32,
        2,
        ("bfloat16", "w4a16_mxfp4", "bfloat16"),
        256,
    ),
    "int4": Precision(
        "4-bit experts, a 16-bit scale per 32, the rest 16-bit", 2, 0.5 + 2 / 32, 2, ("bfloat16", "int4_wo", "bfloat16")
    ),
}
"""Sizes: OCP MX specification (mxfp4), the checkpoints' `quantization_config` (fp8_block, int4). That mxfp4 is padded
follows from what vLLM 0.14 logs for gpt-oss-120b, 64.38 GiB (github.com/vllm-project/vllm/issues/33155)."""


def precision_named(name: str) -> Precision:
    """The precision called `name`.

    Raises:
        InputError: there is none; the text lists those that exist.
    """
    if name not in PRECISIONS:
        raise InputError(f"no precision {name!r}; known precisions are {', '.join(PRECISIONS)}")
    return PRECISIONS[name]


def published_precision(quantization: object) -> str:
    """The precision that a checkpoint's `quantization_config` describes; bf16 without one.

    Raises:
        InputError: it is none of those with measured kernels.
    """
    if not quantization:
        return "bf16"
    if not isinstance(quantization, Mapping):
        raise InputError(f"quantization_config: expected an object, found {quantization!r}")
    method, algorithm = (str(quantization.get(key) or "").lower() for key in ("quant_method", "quant_algo"))
    weights = _weights(quantization)
    if method == "mxfp4":
        return "mxfp4"
    if method == "compressed-tensors" and weights == ("int", 4, 32):
        return "int4"
    if method == "fp8" and quantization.get("weight_block_size"):
        return "fp8_block"
    if "fp8" in (method, algorithm) or (method == "compressed-tensors" and weights[:2] == ("float", 8)):
        return "fp8_kv" if _eight_bit_kv(quantization) else "fp8"
    found = " ".join(part for part in (method, algorithm) if part)
    raise InputError(f"quantization_config: expected one of fp8, mxfp4, int4 in groups of 32, found {found!r}")


def _eight_bit_kv(quantization: Mapping[str, object]) -> bool:
    scheme = quantization.get("kv_cache_scheme")
    bits = scheme.get("num_bits") if isinstance(scheme, Mapping) else None
    return bits == 8 or str(quantization.get("kv_cache_quant_algo") or "").lower() == "fp8"


def _weights(quantization: Mapping[str, object]) -> tuple[object, object, object]:
    """Type, bits and group size of the first group of a compressed-tensors checkpoint."""
    groups = quantization.get("config_groups")
    group = next(iter(groups.values()), None) if isinstance(groups, dict) else None
    weights = group.get("weights") if isinstance(group, dict) else None
    found = weights if isinstance(weights, dict) else {}
    return found.get("type"), found.get("num_bits"), found.get("group_size")
