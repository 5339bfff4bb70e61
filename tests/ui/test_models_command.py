"""`simulate models` and `simulate add-model` as a user meets them: one process a case."""

import json
import os
import subprocess
import sys
from pathlib import Path

COMMAND = [str(Path(sys.executable).with_name("flashvector"))]
STAND_IN = Path(__file__).parents[1] / "stack" / "simulator" / "stand_in"
CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 8192,
    "intermediate_size": 28672,
    "num_attention_heads": 64,
    "num_hidden_layers": 60,
    "num_key_value_heads": 8,
    "vocab_size": 32000,
}


def flashvector(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(entry for entry in (str(STAND_IN), os.environ.get("PYTHONPATH")) if entry)
    environment = {**os.environ, "PYTHONPATH": path, "FLASHVECTOR_MODELS_PATH": str(folder), "COLUMNS": "80"}
    return subprocess.run(
        [*COMMAND, *arguments], capture_output=True, text=True, timeout=240, env=environment, cwd=folder, check=False
    )


def test_models_lists_every_shipped_model(tmp_path: Path):
    result = flashvector("simulate", "models", folder=tmp_path)
    assert result.returncode == 0, result.stderr
    lines = {line.split(":")[0]: line for line in result.stdout.splitlines()}
    assert {"llama-3.1-8b", "gpt-oss-120b", "qwen3-235b-a22b-fp8"} <= set(lines)
    for part in ("70.6B", "h100, h200", "TP 1, 2, 4, 8", "fp8", "bf16", "aiconfigurator-core 0.12.0"):
        assert part in lines["llama-3.1-70b"]


def test_models_tells_blocks_and_sources_of_one_model(tmp_path: Path):
    result = flashvector("simulate", "models", "llama-3.1-8b", folder=tmp_path)
    assert result.returncode == 0, result.stderr
    table = next(line for line in result.stdout.splitlines() if "h100 --tp 1 --precision bf16" in line)
    assert "27,613 KV blocks" in table and "vLLM 0.24.0: silicon" in table


def test_an_added_model_runs_by_its_name(tmp_path: Path):
    config = tmp_path / "config.json"
    config.write_text(json.dumps(CONFIG))
    added = flashvector(
        "simulate", "add-model", str(config), "--gpu", "h200", "--tp", "2", "--precision", "fp8", "--name", "mine",
        folder=tmp_path,
    )  # fmt: skip
    assert added.returncode == 0, added.stderr
    assert "mine: " in added.stdout and "h200 --tp 2 --precision fp8" in added.stdout
    assert str(tmp_path / "mine.json") in added.stdout
    options = ["--model", "mine", "--gpu", "h200", "--tp", "2", "--minutes", "1", "--json", "out.json"]
    ran = flashvector("run", *options, folder=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert json.loads((tmp_path / "out.json").read_text())["metrics"]["slo_share"] > 0.9
    absent = flashvector("run", "--model", "mine", "--gpu", "h100", "--tp", "2", folder=tmp_path)
    assert absent.returncode == 2
    assert absent.stderr.strip() == "no step times for mine as h100_tp2_fp8; there are h200_tp2_fp8"


def test_bad_input_is_one_line_and_exit_code_2(tmp_path: Path):
    config = tmp_path / "config.json"
    config.write_text(json.dumps(CONFIG))
    for arguments, named in (
        (["absent.json"], "absent.json: cannot be read"),
        (["config.json", "--name", "mine"], "does not fit on 1 x h100"),
    ):
        result = flashvector("simulate", "add-model", *arguments, folder=tmp_path)
        assert result.returncode == 2
        assert named in result.stderr
        assert len(result.stderr.strip().splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["config.json"]
