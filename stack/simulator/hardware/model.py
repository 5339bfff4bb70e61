"""A model's dimensions as its config.json states them, and the bytes that follow."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stack.errors import InputError
from stack.simulator.hardware.precision import precision_named, published_precision

Config = Mapping[str, Any]

ARCHITECTURES = (
    "LlamaForCausalLM",
    "MistralForCausalLM",
    "Qwen2ForCausalLM",
    "Qwen3ForCausalLM",
    "MixtralForCausalLM",
    "Qwen3MoeForCausalLM",
    "GptOssForCausalLM",
    "MiniMaxM2ForCausalLM",
    "DeepseekV3ForCausalLM",
    "KimiK25ForConditionalGeneration",
)
"""Decoders of attention and (mixtures of) gated feed-forward layers; what else there is keeps another state than KV."""

EXPERT_COUNTS = ("num_local_experts", "n_routed_experts", "num_experts")
"""Fields that say how many routed experts a layer has; which of them depends on the architecture."""


@dataclass(frozen=True)
class Model:
    """Parameters and KV values of a decoder.

    Attributes:
        repository: its name on the public model hub, as engines report it.
        precision: the one it is published in.
        kv_layers: layers whose KV grows with the context; sliding windows are not among them.
        kv_heads, head_size: of keys and of values each.
        latent_size: values per token and layer that stand for keys and values (multi-head latent attention), else 0.
        expert_input: width of what goes into an expert.
        linear, expert, embedding: parameters in linear layers outside experts, in experts, and what is always 16-bit.
    """

    repository: str
    precision: str
    layers: int
    kv_layers: int
    kv_heads: int
    head_size: int
    latent_size: int
    expert_input: int
    linear: int
    expert: int
    embedding: int

    @property
    def parameters(self) -> int:
        """All of them but biases and norms, which are below a thousandth."""
        return self.linear + self.expert + self.embedding

    def weight_bytes(self, precision: str) -> float:
        """All weights.

        Raises:
            InputError: no such precision.
        """
        held = precision_named(precision)
        padded = -(-self.expert_input // held.padded_to) * held.padded_to / self.expert_input
        return self.linear * held.linear_bytes + self.expert * held.expert_bytes * padded + self.embedding * 2

    def kv_bytes_per_token(self, precision: str, tensor_parallel: int = 1) -> int:
        """Keys and values of one token on one GPU; heads that cannot be split, and latent values, are on every GPU."""
        heads = -(-self.kv_heads // tensor_parallel)
        values = self.latent_size or 2 * heads * self.head_size
        return precision_named(precision).kv_bytes * self.kv_layers * values


def model_of(config: Config, repository: str) -> Model:
    """The model that a Hugging Face config.json describes.

    Raises:
        InputError: an unsupported architecture or quantization, or a field that is absent or no positive integer.
    """
    text = text_config(config)
    architecture = architecture_of(config)
    if architecture not in ARCHITECTURES:
        raise InputError(f"architectures: {architecture!r} is not supported; there are {', '.join(ARCHITECTURES)}")
    latent = _latent(text) if text.get("kv_lora_rank") else 0
    layers, hidden = _count(text, "num_hidden_layers"), _count(text, "hidden_size")
    heads = _count(text, "num_attention_heads")
    kv_heads = _count(text, "num_key_value_heads", heads)
    head_size = _count(text, "head_dim", hidden // heads)
    attention = _latent_attention(text) if latent else 2 * hidden * head_size * (heads + kv_heads)
    dense, expert, router = _feed_forward(text, layers, hidden)
    vocabulary = _count(text, "vocab_size") * hidden
    return Model(
        repository=repository,
        precision=published_precision(config.get("quantization_config") or text.get("quantization_config")),
        layers=layers,
        kv_layers=_growing_layers(text, layers),
        kv_heads=kv_heads,
        head_size=head_size,
        latent_size=latent,
        expert_input=hidden,
        linear=layers * attention + dense,
        expert=expert,
        embedding=router + (1 if text.get("tie_word_embeddings") else 2) * vocabulary,
    )


def text_config(config: Config) -> Config:
    """The language model's part of a config.json: all of it, or `text_config` of one that also sees images."""
    text = config.get("text_config", config)
    if not isinstance(text, Mapping):
        raise InputError(f"text_config: expected an object, found {text!r}")
    return text


def architecture_of(config: Config) -> str:
    """The first of `architectures`.

    Raises:
        InputError: there is none.
    """
    found = config.get("architectures")
    if not isinstance(found, list) or not found or not isinstance(found[0], str):
        raise InputError(f"architectures: expected a list with one name, found {found!r}")
    return str(found[0])


def _feed_forward(text: Config, layers: int, hidden: int) -> tuple[int, int, int]:
    """Parameters of dense layers (shared experts among them), of routed experts, and of routers; gate, up and down."""
    key = next((key for key in EXPERT_COUNTS if text.get(key)), None)
    if key is None:
        return 3 * layers * hidden * _count(text, "intermediate_size"), 0, 0
    experts = _count(text, key)
    left_dense = text.get("mlp_only_layers")
    named = len(left_dense) if isinstance(left_dense, list) else 0
    dense_layers = min(layers, _count(text, "first_k_dense_replace", named, least=0))
    mixed = layers - dense_layers
    width = _count(text, "moe_intermediate_size", text.get("intermediate_size"))
    shared = mixed * _count(text, "n_shared_experts", 0, least=0) * width
    dense = dense_layers * _count(text, "intermediate_size") if dense_layers else 0
    return 3 * hidden * (dense + shared), 3 * hidden * mixed * experts * width, mixed * hidden * experts


def _latent(text: Config) -> int:
    return _count(text, "kv_lora_rank") + _count(text, "qk_rope_head_dim")


def _latent_attention(text: Config) -> int:
    """Projections of one layer of multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1)."""
    hidden, heads = _count(text, "hidden_size"), _count(text, "num_attention_heads")
    nope, rope, value = _count(text, "qk_nope_head_dim"), _count(text, "qk_rope_head_dim"), _count(text, "v_head_dim")
    query, latent = _count(text, "q_lora_rank"), _count(text, "kv_lora_rank")
    queries = query * (hidden + heads * (nope + rope))
    keys_and_values = hidden * (latent + rope) + latent * heads * (nope + value)
    return queries + keys_and_values + heads * value * hidden


def _growing_layers(text: Config, layers: int) -> int:
    kinds = text.get("layer_types")
    growing = kinds.count("full_attention") if isinstance(kinds, list) and "sliding_attention" in kinds else 0
    return growing or layers


def _count(text: Config, key: str, default: Any = None, least: int = 1) -> int:  # noqa: ANN401
    value = text.get(key)
    if value is None:
        value = default
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise InputError(f"{key}: expected an integer of at least {least}, found {value!r}")
    return value
