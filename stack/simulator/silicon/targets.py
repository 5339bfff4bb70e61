"""Which tables are shipped, and the program that makes them: python -m stack.simulator.silicon.targets.

Needs the optional extra `silicon`. Dimensions come from the config.json files that the library ships; those of the
other models are below, as their publishers state them.
"""

import json
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any

from stack.errors import InputError
from stack.simulator.hardware.gpu import BLOCK_TOKENS, GPUS, blocks_of
from stack.simulator.hardware.model import Config, model_of
from stack.simulator.hardware.model_files import SHIPPED
from stack.simulator.silicon.distil import add_table, empty_file
from stack.simulator.silicon.text import as_text

TENSOR_PARALLEL = (1, 2, 4, 8)
LEAST_TOKENS = 2048
"""KV tokens that must fit for a table to be worth shipping."""

TARGETS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "llama-3.1-8b": ("meta-llama/Meta-Llama-3.1-8B", ("bf16", "fp8", "fp8_kv")),
    "llama-3.1-70b": ("meta-llama/Meta-Llama-3.1-70B", ("bf16", "fp8", "fp8_kv")),
    "llama-3.1-405b": ("meta-llama/Meta-Llama-3.1-405B", ("fp8",)),
    "llama-2-7b": ("meta-llama/Llama-2-7b-hf", ("bf16",)),
    "llama-2-70b": ("meta-llama/Llama-2-70b-hf", ("bf16",)),
    "codellama-34b": ("codellama/CodeLlama-34b-Instruct-hf", ("bf16",)),
    "mixtral-8x7b": ("mistralai/Mixtral-8x7B-v0.1", ("bf16",)),
    "qwen3-8b": ("Qwen/Qwen3-8B", ("bf16", "fp8", "fp8_block")),
    "qwen3-14b": ("Qwen/Qwen3-14B", ("bf16", "fp8", "fp8_block")),
    "qwen3-32b": ("Qwen/Qwen3-32B", ("bf16", "fp8", "fp8_block")),
    "qwen3-30b-a3b": ("Qwen/Qwen3-30B-A3B", ("bf16", "fp8_block")),
    "qwen3-235b-a22b-fp8": ("Qwen/Qwen3-235B-A22B-FP8", ("fp8_block",)),
    "gpt-oss-20b": ("openai/gpt-oss-20b", ("mxfp4",)),
    "gpt-oss-120b": ("openai/gpt-oss-120b", ("mxfp4",)),
    "minimax-m2.5": ("MiniMaxAI/MiniMax-M2.5", ("fp8_block",)),
    "kimi-k2.5": ("moonshotai/Kimi-K2.5", ("int4",)),
}


def _llama(layers: int, hidden: int, heads: int, kv_heads: int, intermediate: int, vocabulary: int) -> Config:
    return {
        "architectures": ["LlamaForCausalLM"],
        "hidden_size": hidden,
        "intermediate_size": intermediate,
        "max_position_embeddings": 4096,
        "num_attention_heads": heads,
        "num_hidden_layers": layers,
        "num_key_value_heads": kv_heads,
        "tie_word_embeddings": False,
        "vocab_size": vocabulary,
    }


_QWEN3_14B = {**_llama(40, 5120, 40, 8, 17408, 151936), "architectures": ["Qwen3ForCausalLM"], "head_dim": 128}
CONFIGS: Mapping[str, Config] = {
    "meta-llama/Llama-2-7b-hf": _llama(32, 4096, 32, 32, 11008, 32000),
    "meta-llama/Llama-2-70b-hf": _llama(80, 8192, 64, 8, 28672, 32000),
    "codellama/CodeLlama-34b-Instruct-hf": _llama(48, 8192, 64, 8, 22016, 32000),
    "Qwen/Qwen3-14B": _QWEN3_14B,
}


def config_of(repository: str) -> Config:
    """The model's config.json: ours, or the library's copy."""
    if repository in CONFIGS:
        return CONFIGS[repository]
    library = find_spec("aiconfigurator_core")
    if library is None or library.origin is None:
        raise InputError("this program needs the extra `silicon`: pip install aiconfigurator-core==0.12.0")
    path = Path(library.origin).parent / "model_configs" / f"{repository.replace('/', '--')}_config.json"
    config: dict[str, Any] = json.loads(path.read_text())
    return config


def shipped_file(name: str) -> dict[str, Any]:
    """A model's file with every combination that fits and was measured; says on stderr which were not."""
    repository, precisions = TARGETS[name]
    config = config_of(repository)
    file, model = empty_file(name, repository, config), model_of(config, repository)
    for gpu, tensor_parallel, precision in product(GPUS, TENSOR_PARALLEL, precisions):
        try:
            if blocks_of(model, gpu, tensor_parallel, precision) * BLOCK_TOKENS >= LEAST_TOKENS:
                add_table(file, config, gpu, tensor_parallel, precision)
        except InputError as error:
            sys.stderr.write(f"{name} {gpu} tp{tensor_parallel} {precision}: {error}\n")
    return file


def main() -> None:
    """Write one file per model, those named as arguments or all, into the package's folder."""
    for name in sys.argv[1:] or TARGETS:
        (SHIPPED / f"{name}.json").write_text(as_text(shipped_file(name)))


if __name__ == "__main__":
    main()
