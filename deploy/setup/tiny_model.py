"""Make a tiny Llama without weights, for `vllm serve --load-format dummy`: configuration, tokenizer, chat template.

usage: tiny_model.py MODEL_FOLDER TEXT_FILE
The tokenizer learns from TEXT_FILE; byte-level, so that every text has tokens.
"""

import json
import sys
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

VOCABULARY = 1024
CONFIGURATION = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "vocab_size": VOCABULARY,
    "max_position_embeddings": 4096,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "hidden_act": "silu",
    "tie_word_embeddings": True,
    "bos_token_id": 0,
    "eos_token_id": 1,
    "torch_dtype": "bfloat16",
}
CHAT_TEMPLATE = "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}assistant:"


def tokenizer_from(text: Path) -> PreTrainedTokenizerFast:
    """A byte-level BPE tokenizer whose vocabulary is as large as the model's."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY, special_tokens=["<s>", "</s>"], initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train([str(text)], trainer)
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>")
    fast.chat_template = CHAT_TEMPLATE
    return fast


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    tokens = tokenizer_from(Path(sys.argv[2]))
    if len(tokens) != VOCABULARY:
        sys.exit(f"{sys.argv[2]}: expected text for {VOCABULARY} tokens, found {len(tokens)}")
    tokens.save_pretrained(folder)
    (folder / "config.json").write_text(json.dumps(CONFIGURATION, indent=2), encoding="utf-8")
