"""A user's own model, made with a stand-in for the optional library."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from stack.errors import FlashVectorError, InputError
from stack.simulator.fleet import FleetSpec
from stack.simulator.hardware.gpu import known_models, kv_blocks
from stack.simulator.hardware.model_files import FOLDER_VARIABLE, model_file, model_names
from stack.simulator.hardware.overhead import HostOverhead
from stack.simulator.hardware.step_times import tables_for, usual_precision
from stack.simulator.load.traffic import plain
from stack.simulator.silicon.added_model import add_model
from stack.simulator.silicon.library import LibraryAbsentError
from stack.simulator.simulation import Simulation

STAND_IN = Path(__file__).parent / "stand_in"
CONFIG = {
    "architectures": ["Qwen3ForCausalLM"],
    "head_dim": 128,
    "hidden_size": 2560,
    "intermediate_size": 9728,
    "num_attention_heads": 32,
    "num_hidden_layers": 36,
    "num_key_value_heads": 8,
    "tie_word_embeddings": True,
    "vocab_size": 151936,
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "models"))
    return tmp_path / "models"


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    _forget()
    monkeypatch.syspath_prepend(str(STAND_IN))
    yield
    _forget()


def _forget() -> None:
    for name in [name for name in sys.modules if name.startswith("aiconfigurator_core")]:
        del sys.modules[name]


def _config(tmp_path: Path, **changes: object) -> Path:
    path = tmp_path / "My-Model" / "config.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({**CONFIG, **changes}))
    return path


@pytest.mark.usefixtures("library")
def test_an_added_model_can_be_simulated(tmp_path: Path, folder: Path):
    path = add_model(_config(tmp_path), None, "h100", 1, None)
    assert path == folder / "my-model.json"
    assert [entry.name for entry in folder.iterdir()] == ["my-model.json"]
    assert "my-model" in model_names() and "my-model" in known_models()
    assert usual_precision("my-model") == "bf16"
    host = HostOverhead(step_ms=0.13, sequence_ms=0.0164, frontend_s=0.008, async_lag=True)
    fleet = FleetSpec(model="my-model", replicas=1, host=host)
    simulation = Simulation(fleet, plain(np.zeros(1), np.array([512]), np.array([11])))
    simulation.advance(10.0)
    prefill_ms, host_ms, frontend_ms = 1 + 5.12 + 0.001 + 1e-6 * 512 * 256, 0.13 + 0.0164, 8.0
    assert simulation.outcomes().ttft_s[0] * 1e3 == pytest.approx(prefill_ms + host_ms + frontend_ms, rel=1e-4)


@pytest.mark.usefixtures("library")
def test_further_tables_join_those_there_are(tmp_path: Path):
    config = _config(tmp_path)
    add_model(config, "mine", "h100", 1, None)
    add_model(config, "mine", "h200", 2, "fp8")
    assert sorted(model_file("mine")["tables"]) == ["h100_tp1_bf16", "h200_tp2_fp8"]
    assert tables_for("mine", "h200", 2, "fp8").context_ms[0] == pytest.approx(1.01)
    assert kv_blocks("mine", "h200", 2, "fp8") > kv_blocks("mine", "h100", 1, "bf16")
    with pytest.raises(InputError, match="mine is already there with another config"):
        add_model(_config(tmp_path, num_hidden_layers=12), "mine", "h100", 2, None)
    assert len(model_file("mine")["tables"]) == 2


@pytest.mark.parametrize(
    ("quantization", "precision"),
    [
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, "fp8_block"),
        ({"quant_method": "fp8", "activation_scheme": "static"}, "fp8"),
        ({"quant_method": "modelopt", "quant_algo": "FP8", "kv_cache_scheme": {"num_bits": 8}}, "fp8_kv"),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"a": {"weights": {"type": "float", "num_bits": 8}}},
            },
            "fp8",
        ),
    ],
)
@pytest.mark.usefixtures("library")
def test_a_quantized_checkpoint_takes_its_own_precision(
    tmp_path: Path, quantization: dict[str, object], precision: str
):
    add_model(_config(tmp_path, quantization_config=quantization), "mine", "h100", 1, None)
    assert list(model_file("mine")["tables"]) == [f"h100_tp1_{precision}"]
    assert usual_precision("mine") == precision


@pytest.mark.usefixtures("library")
def test_quantization_may_stand_beside_the_config(tmp_path: Path):
    config = _config(tmp_path)
    beside = config.with_name("hf_quant_config.json")
    beside.write_text(json.dumps({"quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}}))
    add_model(config, "mine", "h100", 1, None)
    assert usual_precision("mine") == "fp8_kv"
    beside.write_text(json.dumps({"quantization": {"quant_algo": "NVFP4"}}))
    with pytest.raises(InputError, match="found 'modelopt nvfp4'"):
        add_model(config, "other", "h100", 1, None)


@pytest.mark.parametrize(
    ("changes", "arguments", "says"),
    [
        ({"head_dim": 80}, (None, "h100", 1, None), "nothing measured: attention data missing for this head size"),
        ({"architectures": ["MambaForCausalLM"]}, (None, "h100", 1, None), "MambaForCausalLM' is not supported"),
        ({"num_hidden_layers": 3600}, (None, "h100", 1, None), "does not fit on 1 x h100: 727.4 GB of weights"),
        ({"quantization_config": {"quant_method": "awq"}}, (None, "h100", 1, None), "found 'awq'"),
        ({}, (None, "b9000", 1, None), "no GPU 'b9000'; known GPUs are h100, h200"),
        ({}, (None, "h100", 3, None), "num_attention_heads: 32 cannot be spread over 3 GPUs"),
        ({}, (None, "h100", 1, "fp3"), "no precision 'fp3'; known precisions are bf16"),
        ({}, (None, "h100", 1, "mxfp4"), "mxfp4 is a precision of experts"),
        ({}, ("llama-3.1-8b", "h100", 1, None), "llama-3.1-8b is the name of a model that is shipped"),
        ({}, ("../mine", "h100", 1, None), "--name: expected letters"),
        ({"hidden_size": None}, (None, "h100", 1, None), "hidden_size: expected an integer"),
    ],
)
@pytest.mark.usefixtures("library")
def test_what_cannot_be_added_is_one_line_and_leaves_nothing(
    tmp_path: Path, folder: Path, changes: dict[str, object], arguments: tuple[str, str, int, str], says: str
):
    with pytest.raises(InputError, match=says) as raised:
        add_model(_config(tmp_path, **changes), *arguments)
    assert "\n" not in str(raised.value)
    assert not folder.exists()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "No such file"),
        ("{", "not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
        ("[1]", "expected a JSON object, found list"),
        ("{}", "architectures"),
    ],
)
def test_files_that_are_no_config(tmp_path: Path, content: str | None, says: str):
    path = tmp_path / "config.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(InputError, match=f"{path}: .*{says}"):
        add_model(path, "mine", "h100", 1, None)


def test_without_the_library_the_error_says_how_to_install_it(tmp_path: Path, folder: Path, monkeypatch):
    monkeypatch.setitem(sys.modules, "aiconfigurator_core", None)
    with pytest.raises(LibraryAbsentError, match=r"-m pip install aiconfigurator-core==0\.12\.0") as raised:
        add_model(_config(tmp_path), None, "h100", 1, None)
    assert isinstance(raised.value, FlashVectorError)
    assert "\n" not in str(raised.value)
    assert not folder.exists()


@pytest.mark.usefixtures("library")
def test_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path, folder: Path):
    folder.write_text("a file where the folder should be")
    with pytest.raises(InputError, match="cannot be written"):
        add_model(_config(tmp_path), None, "h100", 1, None)


@pytest.mark.parametrize("content", ["{", "[]", '{"model": "mine"}'])
def test_a_damaged_file_of_the_user_harms_no_other_model(folder: Path, content: str):
    folder.mkdir()
    (folder / "mine.json").write_text(content)
    with pytest.raises(InputError, match=r"mine\.json"):
        tables_for("mine", "h100", 1)
    assert "llama-3.1-8b" in known_models() and "mine" not in known_models()


@pytest.mark.usefixtures("library")
def test_a_damaged_table_is_named(tmp_path: Path):
    path = add_model(_config(tmp_path), "mine", "h100", 1, None)
    file = json.loads(path.read_text())
    del file["tables"]["h100_tp1_bf16"]["context_ms"]
    path.write_text(json.dumps(file))
    with pytest.raises(InputError, match="damaged at h100_tp1_bf16: 'context_ms'"):
        tables_for("mine", "h100", 1)
