"""What must hold of step times whatever the model: they grow with work and shrink with GPUs."""

from pathlib import Path

import numpy as np
import pytest

from stack.simulator.engine.layout import Tables
from stack.simulator.hardware.model_files import SHIPPED, model_file, table_facts
from stack.simulator.hardware.step_times import tables_for

MODELS = sorted(path.stem for path in SHIPPED.glob("*.json"))
STEPS = ((1, 1024), (32, 1024), (256, 4096))
NOTICE = Path(__file__).parents[3] / "NOTICE"


def _tables(model: str) -> dict[tuple[str, int, str], Tables]:
    return {(facts := table_facts(key)): tables_for(model, *facts) for key in model_file(model)["tables"]}


def _decode_ms(tables: Tables, batch: int, context: int) -> float:
    i, j = list(tables.batches).index(batch), list(tables.contexts).index(context)
    return float(tables.generation_ms[i] + tables.decode_attention_ms[i, j])


def _prefill_ms(tables: Tables, tokens: int) -> float:
    i, j = list(tables.tokens).index(tokens), list(tables.chunks).index(tokens)
    return float(tables.context_ms[i] + tables.prefill_attention_ms[j, 0])


@pytest.mark.parametrize("model", MODELS)
def test_attention_grows_with_context(model: str):
    """Measured to within 5 %; below 128 tokens, where attention is nearly nothing, single points stand out."""
    for facts, tables in _tables(model).items():
        whole = tables.generation_ms[:, None] + tables.decode_attention_ms
        assert (np.diff(whole[:, tables.contexts >= 128]) > -0.05 * whole[:, tables.contexts >= 128][:, 1:]).all(), (
            facts
        )
        assert (whole[:, -1] > whole[:, 0]).all(), facts


@pytest.mark.parametrize("model", MODELS)
def test_steps_grow_with_tokens_and_batch(model: str):
    """Powers of two, measured to within 7 %; between them more tokens may take less time, as full tiles are quick."""
    for facts, tables in _tables(model).items():
        prompt = [_prefill_ms(tables, size) for size in (256, 512, 1024, 2048, 4096, 8192, 16384)]
        assert (np.diff(prompt) > -0.07 * np.array(prompt[1:])).all(), facts
        assert prompt[-1] > prompt[0], facts
        assert tables.generation_ms[-1] > tables.generation_ms[0], facts


@pytest.mark.parametrize("model", MODELS)
def test_more_gpus_make_a_step_shorter_but_never_by_more_than_their_number(model: str):
    """FP8 blocks gain next to nothing from more GPUs in these measurements, and lose once: 14B on H100, TP 1 to 2."""
    tables = _tables(model)
    for (gpu, parallel, precision), one in tables.items():
        two = tables.get((gpu, 2 * parallel, precision))
        for batch, context in STEPS if two else ():
            share = _decode_ms(two, batch, context) / _decode_ms(one, batch, context)
            assert 0.5 <= share < (1.3 if precision == "fp8_block" else 1.01), (gpu, parallel, precision, batch)


@pytest.mark.parametrize("model", MODELS)
def test_h200_decodes_no_slower_than_h100(model: str):
    """More memory bandwidth, the same compute; 5 % for the measurements' noise, 15 % where FP8 blocks are launched."""
    tables = _tables(model)
    for (gpu, parallel, precision), mine in tables.items():
        other = tables.get(("h200", parallel, precision))
        for batch, context in STEPS if gpu == "h100" and other else ():
            share = _decode_ms(other, batch, context) / _decode_ms(mine, batch, context)
            assert share < (1.15 if precision == "fp8_block" else 1.05), (parallel, precision, batch)


@pytest.mark.parametrize("model", MODELS)
def test_a_file_says_where_its_times_come_from(model: str):
    file = model_file(model)
    provenance = file["provenance"]
    assert file["model"] == model
    assert provenance["library"] == "aiconfigurator-core 0.12.0"
    assert (provenance["licence"], provenance["copyright"]) == ("Apache-2.0", "NVIDIA CORPORATION & AFFILIATES")
    for key, table in file["tables"].items():
        gpu, _, _ = table_facts(key)
        assert provenance["measured_with"][gpu] == "vLLM 0.24.0"
        assert sum(table["sources"].values()) == pytest.approx(1.0, abs=0.01)
        assert set(table["sources"]) <= {"silicon", "mixed", "estimated", "empirical"}
        assert "gaps" not in table


def test_the_notice_names_owner_licence_and_versions():
    text = NOTICE.read_text()
    for named in ("NVIDIA", "Apache License, Version 2.0", "aiconfigurator-core 0.12.0", "vLLM 0.24.0"):
        assert named in text


def test_all_tables_together_stay_small():
    assert sum(path.stat().st_size for path in SHIPPED.glob("*.json")) < 1_000_000
