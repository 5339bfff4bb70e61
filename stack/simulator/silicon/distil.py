"""Distil step-time tables of one model from measured kernel times; needs the optional extra `silicon`."""

from typing import Any

from stack.errors import InputError
from stack.simulator.hardware.gpu import GPUS, blocks_of
from stack.simulator.hardware.model import Config, Model, model_of, text_config
from stack.simulator.hardware.model_files import table_key
from stack.simulator.hardware.precision import precision_named
from stack.simulator.silicon.grid import ATTENTION_BATCHES, BATCHES, CACHED, CHUNKS, CONTEXTS, GRID, TOKENS
from stack.simulator.silicon.library import LIBRARY, Experts, Kernels

DIGITS = 5
BLOCK_WEIGHTS = 128
"""Side of an FP8 block; an expert that tensor parallelism would cut through one cannot be shared."""
CONFIG_FIELDS = (
    "num_hidden_layers",
    "hidden_size",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "intermediate_size",
    "moe_intermediate_size",
    "num_local_experts",
    "n_routed_experts",
    "num_experts",
    "n_shared_experts",
    "num_experts_per_tok",
    "first_k_dense_replace",
    "mlp_only_layers",
    "kv_lora_rank",
    "q_lora_rank",
    "qk_nope_head_dim",
    "qk_rope_head_dim",
    "v_head_dim",
    "layer_types",
    "vocab_size",
    "tie_word_embeddings",
)
QUANTIZATION_FIELDS = (
    "quant_method",
    "quant_algo",
    "weight_block_size",
    "config_groups",
    "kv_cache_scheme",
    "kv_cache_quant_algo",
)

Json = dict[str, Any]


def empty_file(name: str, repository: str, config: Config) -> Json:
    """A model's file without tables; see `stack.simulator.hardware.model_files` for its fields.

    Raises:
        InputError: the config is unusable.
    """
    model_of(config, repository)
    kept = {field: value for field, value in text_config(config).items() if field in CONFIG_FIELDS}
    quantization = config.get("quantization_config") or text_config(config).get("quantization_config")
    if quantization:
        kept["quantization_config"] = {key: quantization[key] for key in QUANTIZATION_FIELDS if key in quantization}
    kept = {"architectures": config.get("architectures")} | kept
    return {
        "model": name,
        "repository": repository,
        "config": kept,
        "provenance": {
            "library": LIBRARY,
            "licence": "Apache-2.0",
            "copyright": "NVIDIA CORPORATION & AFFILIATES",
            "measured_with": {},
        },
        **GRID,
        "tables": {},
        "attention": {},
    }


def add_table(file: Json, config: Config, gpu: str, tensor_parallel: int, precision: str) -> None:
    """Put the tables of one GPU type, tensor-parallel size and precision into a model's file, in ms per engine step.

    A step's time is the non-attention time at its token count, plus attention of each prefill chunk, plus decode
    attention of the batch; summed over operations, the tables give the library's own answers at the grid points.

    Args:
        config: the whole config.json.

    Raises:
        InputError: the weights do not fit, the heads cannot be spread, or there are no measurements.
        LibraryAbsentError: the extra is not installed.
    """
    model, held = model_of(file["config"], file["repository"]), precision_named(precision)
    blocks_of(model, gpu, tensor_parallel, precision)
    heads = file["config"]["num_attention_heads"]
    if heads % tensor_parallel:
        raise InputError(f"num_attention_heads: {heads} cannot be spread over {tensor_parallel} GPUs")
    if not model.expert and held.expert_bytes != held.linear_bytes:
        raise InputError(f"{precision} is a precision of experts; this model has none")
    experts = spread_of_experts(model, file["config"], tensor_parallel, precision)
    kernels = Kernels(config, GPUS[gpu], tensor_parallel, held, experts)
    name = f"{gpu}_tp{tensor_parallel}_kv{8 * held.kv_bytes}"
    attention = file["attention"].get(name) or _attention(kernels)
    table = {
        "kernels": "/".join(held.kernels),
        **({"experts": _spread(experts)} if model.expert else {}),
        **({"fused_attention": True} if kernels.fused_attention else {}),
        "sources": kernels.sources(),
        "attention": name,
        "context_ms": [_rounded(kernels.context_rest(tokens)) for tokens in TOKENS],
        "generation_ms": [_rounded(kernels.generation_rest(batch)) for batch in BATCHES],
        **({"gaps": sorted(kernels.gaps)} if kernels.gaps else {}),
    }
    file["provenance"]["measured_with"][gpu] = kernels.measured_with
    file["attention"][name] = attention
    file["tables"][table_key(gpu, tensor_parallel, precision)] = table


def spread_of_experts(model: Model, config: Config, tensor_parallel: int, precision: str) -> Experts:
    """Each expert over all GPUs, as vLLM does by default; whole experts per GPU where FP8 blocks forbid it."""
    width = config.get("moe_intermediate_size") or config.get("intermediate_size") or 0
    split = precision == "fp8_block" and width % (tensor_parallel * BLOCK_WEIGHTS) != 0
    if not model.expert:
        return Experts(1, 1)
    return Experts(1, tensor_parallel) if split else Experts(tensor_parallel, 1)


def _spread(experts: Experts) -> str:
    return "expert parallel" if experts.groups > 1 else "tensor parallel"


def _attention(kernels: Kernels) -> Json:
    return {
        "decode_attention_ms": [
            [_rounded(kernels.generation_attention(batch, context)) for context in CONTEXTS]
            for batch in ATTENTION_BATCHES
        ],
        "prefill_attention_ms": [
            [_rounded(kernels.context_attention(tokens, cached)) for cached in CACHED] for tokens in CHUNKS
        ],
    }


def _rounded(time_ms: float) -> float:
    return float(f"{time_ms:.{DIGITS}g}")
