"""Step-time tables and the arithmetic of KV blocks."""

from itertools import pairwise

import numpy as np
import pytest

from stack.errors import InputError
from stack.simulator.engine.interpolation import across, along
from stack.simulator.fleet import FleetSpec
from stack.simulator.hardware.gpu import GPUS, kv_blocks
from stack.simulator.hardware.model_files import model_file, model_names
from stack.simulator.hardware.overhead import HostOverhead
from stack.simulator.hardware.step_times import tables_for
from stack.simulator.load.traffic import plain
from stack.simulator.simulation import Simulation

COMBINATIONS = [(name, *key.split("_", 2)) for name in model_names() for key in model_file(name)["tables"]]
PROMISED = [
    *(("llama-3.1-8b", gpu, tp, precision) for gpu in GPUS for tp in (1, 2, 4, 8) for precision in ("bf16", "fp8")),
    *(("qwen3-8b", gpu, tp, precision) for gpu in GPUS for tp in (1, 2, 4, 8) for precision in ("bf16", "fp8")),
    *(("qwen3-32b", gpu, tp, precision) for gpu in GPUS for tp in (1, 2, 4, 8) for precision in ("bf16", "fp8")),
    *(("llama-3.1-70b", gpu, tp, "bf16") for gpu, tp in (("h100", 4), ("h100", 8), ("h200", 2), ("h200", 8))),
    *(("llama-3.1-70b", gpu, tp, "fp8") for gpu, tp in (("h100", 1), ("h100", 2), ("h100", 4), ("h200", 1))),
    *(("gpt-oss-120b", gpu, tp, "mxfp4") for gpu in GPUS for tp in (1, 2, 4, 8)),
    *(("llama-2-7b", gpu, 1, "bf16") for gpu in GPUS),
    *(("llama-2-70b", gpu, 4, "bf16") for gpu in GPUS),
    *(("codellama-34b", gpu, 2, "bf16") for gpu in GPUS),
    *(("mixtral-8x7b", gpu, 2, "bf16") for gpu in GPUS),
]


def _facts(combination: tuple[str, str, str, str]) -> tuple[str, str, int, str]:
    model, gpu, parallel, precision = combination
    return model, gpu, int(parallel.removeprefix("tp")), precision


@pytest.mark.parametrize("combination", COMBINATIONS, ids="-".join)
def test_every_shipped_table_is_sane(combination: tuple[str, str, str, str]):
    facts = _facts(combination)
    tables = tables_for(*facts)
    for grid in (tables.tokens, tables.batches, tables.contexts, tables.chunks, tables.cached):
        assert all(low < high for low, high in pairwise(grid))
    for values in (tables.context_ms, tables.generation_ms, tables.decode_attention_ms, tables.prefill_attention_ms):
        assert np.isfinite(values).all()
        assert (values >= 0).all()
    assert (tables.context_ms > 0).all() and (tables.generation_ms > 0).all()
    assert kv_blocks(*facts) >= 128


@pytest.mark.parametrize("combination", PROMISED, ids=str)
def test_promised_combinations_are_shipped(combination: tuple[str, str, int, str]):
    assert tables_for(*combination).tokens[0] == 1


def test_tables_give_the_library_s_own_answers():
    """Figures of aiconfigurator-core 0.12.0: 8.33 ms for 32 x 1024 decoding, 13.49 ms for 512 new on 4096 cached."""
    tables = tables_for("llama-3.1-8b", "h100", 1)
    decode = along(tables.batches, tables.generation_ms, 32.0)
    decode += across(tables.batches, tables.contexts, tables.decode_attention_ms, 32.0, 1024.0)
    assert decode == pytest.approx(8.33, abs=0.02)
    prefill = along(tables.tokens, tables.context_ms, 512.0)
    prefill += across(tables.chunks, tables.cached, tables.prefill_attention_ms, 512.0, 4096.0)
    assert prefill == pytest.approx(13.49, abs=0.02)


def test_interpolation():
    grid = np.array([1.0, 2.0, 4.0])
    values = np.array([10.0, 20.0, 40.0])
    assert [along(grid, values, x) for x in (0.0, 1.0, 3.0, 4.0, 6.0)] == [10.0, 10.0, 30.0, 40.0, 60.0]
    table = values[:, None] + np.array([0.0, 1.0, 3.0])
    assert across(grid, grid, table, 3.0, 2.0) == pytest.approx(31.0)


def test_one_request_takes_what_the_tables_say():
    """Alone on a replica: prefill, then one decode step per token, each with host time."""
    traffic = plain(np.zeros(1), np.array([512]), np.array([11]))
    host = HostOverhead(step_ms=0.13, sequence_ms=0.0164, frontend_s=0.008, async_lag=True)
    simulation = Simulation(FleetSpec(replicas=1, host=host), traffic)
    simulation.advance(10.0)
    outcomes, tables = simulation.outcomes(), tables_for("llama-3.1-8b", "h100", 1)
    prefill = along(tables.tokens, tables.context_ms, 512.0)
    prefill += across(tables.chunks, tables.cached, tables.prefill_attention_ms, 512.0, 0.0)
    host_ms, frontend_ms = 0.13 + 0.0164, 8.0
    assert outcomes.ttft_s[0] * 1e3 == pytest.approx(prefill + host_ms + frontend_ms)
    decode = tables.generation_ms[0] + across(
        tables.batches, tables.contexts, tables.decode_attention_ms, 1.0, 512 + 5.5
    )
    assert outcomes.itl_s[0] * 1e3 == pytest.approx(decode + host_ms, rel=1e-6)


def test_kv_blocks_by_hand():
    """(0.9 x 81559 MiB - 16.06 GB - 3 GB) / (2 x 2 bytes x 32 layers x 8 heads x 128 x 16 tokens)."""
    assert kv_blocks("llama-3.1-8b", "h100", 1) == 27_613


@pytest.mark.parametrize(
    ("fleet", "says"),
    [
        ({"model": "llama-9"}, "no model 'llama-9'; known models are codellama-34b"),
        ({"tensor_parallel": 3}, "no step times for llama-3.1-8b as h100_tp3_bf16; there are h100_tp1_bf16"),
        ({"model": "gpt-oss-120b"}, "no step times for gpt-oss-120b as h100_tp1_bf16; there are h100_tp1_mxfp4"),
        ({"replicas": 0}, "at least one replica"),
        ({"profile": "vllm-9"}, "no engine profile"),
        ({"kv_blocks": 0}, "kv_blocks"),
    ],
)
def test_fleets_that_cannot_be_simulated(fleet: dict[str, object], says: str):
    with pytest.raises(InputError, match=says):
        Simulation(FleetSpec(**fleet), plain(np.zeros(1), np.array([1]), np.array([1])))


def test_weights_that_do_not_fit():
    with pytest.raises(InputError, match="does not fit"):
        kv_blocks("llama-3.1-70b", "h100", 1)
