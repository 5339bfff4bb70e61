"""Dimensions, weights and KV of models against figures published elsewhere."""

import pytest

from stack.errors import InputError
from stack.simulator.hardware.gpu import known_models, kv_blocks, model_named
from stack.simulator.hardware.model import model_of

LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 576,
    "intermediate_size": 1536,
    "num_attention_heads": 9,
    "num_hidden_layers": 30,
    "num_key_value_heads": 3,
    "tie_word_embeddings": True,
    "vocab_size": 49152,
}
"""SmolLM2-135M."""


@pytest.mark.parametrize(
    ("name", "billions"),
    [
        ("llama-3.1-8b", 8.03),
        ("llama-3.1-70b", 70.55),
        ("llama-3.1-405b", 405.85),
        ("llama-2-7b", 6.74),
        ("llama-2-70b", 68.98),
        ("codellama-34b", 33.74),
        ("mixtral-8x7b", 46.70),
        ("qwen3-8b", 8.19),
        ("qwen3-14b", 14.77),
        ("qwen3-32b", 32.76),
        ("qwen3-30b-a3b", 30.53),
        ("qwen3-235b-a22b-fp8", 235.09),
        ("gpt-oss-20b", 20.91),
        ("gpt-oss-120b", 116.83),
        ("minimax-m2.5", 228.70),
        ("kimi-k2.5", 1026.41),
    ],
)
def test_parameters_are_those_of_the_model_cards(name: str, billions: float):
    assert model_named(name).parameters / 1e9 == pytest.approx(billions, rel=2e-3)


def test_every_model_is_checked_above():
    assert len(known_models()) >= 16


@pytest.mark.parametrize(
    ("name", "precision", "gib"),
    [
        ("gpt-oss-120b", "mxfp4", 64.38),  # vLLM 0.14.1 on an H100, github.com/vllm-project/vllm/issues/33155
        ("gpt-oss-20b", "mxfp4", 13.72),  # vLLM 0.19.0 on an A100, myoceane.fr/index.php/ai-vllm-a100-gemma-4
    ],
)
def test_weights_take_what_vllm_logs(name: str, precision: str, gib: float):
    assert model_named(name).weight_bytes(precision) / 2**30 == pytest.approx(gib, rel=0.025)


def test_fp8_halves_all_but_embeddings():
    model = model_named("llama-3.1-8b")
    assert model.weight_bytes("bf16") - model.weight_bytes("fp8") == model.linear
    assert model.weight_bytes("fp8_block") / model.weight_bytes("fp8") == pytest.approx(1.0, abs=3e-4)


def test_kv_of_a_gibibyte_is_what_vllm_allots():
    """vLLM 0.32 made 1456 blocks of 32 tokens of one GiB for SmolLM2-135M."""
    bytes_per_token = model_of(LLAMA, "smollm2").kv_bytes_per_token("bf16")
    assert bytes_per_token == 23_040
    assert 2**30 // (32 * bytes_per_token) == 1456


def test_kv_on_four_gpus_is_what_vllm_logs():
    """8.11 GiB a GPU held 178,880 tokens (github.com/vllm-project/vllm/issues/21348)."""
    bytes_per_token = model_named("qwen3-235b-a22b-fp8").kv_bytes_per_token("fp8_block", 4)
    assert 8.11 * 2**30 / bytes_per_token == pytest.approx(178_880, rel=0.02)


def test_kv_heads_that_cannot_be_split_are_on_every_gpu():
    model = model_named("qwen3-235b-a22b-fp8")
    assert model.kv_bytes_per_token("fp8_block", 8) == model.kv_bytes_per_token("fp8_block", 4)
    assert model_named("kimi-k2.5").kv_bytes_per_token("int4", 8) == 61 * (512 + 64) * 2


def test_layers_with_a_sliding_window_keep_no_growing_kv():
    model = model_named("gpt-oss-120b")
    assert (model.layers, model.kv_layers) == (36, 18)
    assert model.kv_bytes_per_token("mxfp4") == 18 * 2 * 8 * 64 * 2


def test_half_the_kv_bytes_hold_twice_the_blocks():
    assert kv_blocks("llama-3.1-70b", "h200", 4, "fp8_kv") == pytest.approx(
        2 * kv_blocks("llama-3.1-70b", "h200", 4, "fp8"), abs=1
    )


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"architectures": []}, "architectures"),
        ({"architectures": ["MambaForCausalLM"]}, "'MambaForCausalLM' is not supported"),
        ({"num_hidden_layers": 0}, "num_hidden_layers: expected an integer of at least 1, found 0"),
        ({"hidden_size": "wide"}, "hidden_size: .* found 'wide'"),
        ({"vocab_size": None}, "vocab_size"),
        ({"num_attention_heads": True}, "num_attention_heads"),
        ({"quantization_config": {"quant_method": "awq"}}, "quantization_config: .* found 'awq'"),
        ({"quantization_config": "fp8"}, "quantization_config"),
        ({"text_config": 7}, "text_config"),
        ({"num_local_experts": "eight"}, "num_local_experts"),
    ],
)
def test_configs_that_describe_no_model(change: dict[str, object], says: str):
    with pytest.raises(InputError, match=says):
        model_of({**LLAMA, **change}, "some/model")
