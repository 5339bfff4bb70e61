"""Which rows are compared: decided from inputs and quality notes, never from figures that are merely unexpected."""

import pytest
from made_rows import open_row, row

from stack.errors import InputError
from stack.simulator.validation.case import case_of
from stack.simulator.validation.contradictions import contradicted
from stack.simulator.validation.roofline import ClosedLoop, decode_floor_ms, prompt_token_s
from stack.simulator.validation.selection import select


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"quality": "C (overload)"}, r"its file rates it C \(overload\)"),
        ({"quality": "B", "note": "Do not use for calibration"}, "its own note says: Do not use"),
        ({"model": "Qwen/Qwen3-14B-AWQ"}, "no step times for model Qwen/Qwen3-14B-AWQ"),
        ({"gpu": "a100_sxm"}, "no step times on GPU a100_sxm"),
        ({"precision": "int3"}, "no step times in precision 'int3'"),
        ({"tensor_parallel": 3}, "no step times for llama-3.1-8b as h100_tp3_bf16"),
        ({"prompt_tokens": None}, "prompt or output length not published"),
        ({"output_tokens": 1.0}, "a single output token has no TPOT"),
        ({"concurrency": None}, "concurrency not published"),
        ({"tpot_mean_ms": None}, "no TPOT and TTFT published"),
        ({"load": "open (rate not published)"}, "request rate not published"),
        ({"load": "open-trace (ShareGPT)", "request_rate_per_s": 10.0}, "arrival times and lengths of its trace"),
        ({"concurrency": 300.0}, "saturated or not: 300 users, and max_num_seqs not published"),
        ({"concurrency": 64.0, "max_num_seqs": 32.0}, "saturated: 64 users at max_num_seqs 32"),
        ({"prompt_tokens": 1e9}, "saturated: 8 users need"),
        ({"load": "open-constant", "request_rate_per_s": 1.0, "prompt_tokens": 1e6}, "saturated: 1 users need"),
        ({"model": "meta-llama/Llama-3.1-70B"}, "in bf16 does not fit on 1 x h100"),
        ({"tpot_mean_ms": 1.0}, "faster than the GPUs it names can be"),
    ],
)
def test_why_a_row_is_left_out(changes: dict[str, object], says: str):
    with pytest.raises(InputError, match=says):
        case_of(row(**changes))


def test_saturation_follows_from_kv_memory():
    """27,613 blocks of 16 tokens hold 441,808; 48 users of 8,192 + 512 need 417,792, 52 users 452,608."""
    lengths = {"prompt_tokens": 8192.0, "output_tokens": 512.0, "tpot_mean_ms": 200.0}
    assert case_of(row(concurrency=48.0, **lengths)).kv_blocks > 27_000
    with pytest.raises(InputError, match="saturated: 52 users need 452608 KV tokens"):
        case_of(row(concurrency=52.0, **lengths))


@pytest.mark.parametrize("tpot_mean_ms", [6.0, 8.0, 800.0])
def test_an_unexpected_figure_is_no_reason(tpot_mean_ms: float):
    """6 ms is above what reading 14 GB of weights at 3.35 TB/s takes (4.2 ms, 4.6 at what kernels reach)."""
    assert case_of(row(tpot_mean_ms=tpot_mean_ms)).measured.tpot_ms == tpot_mean_ms


@pytest.mark.parametrize(
    ("model", "precision", "tensor_parallel", "named"),
    [
        ("meta-llama/Llama-3.1-8B-Instruct", "fp16", 1, ("llama-3.1-8b", "bf16", "dense")),
        ("meta-llama/Llama-3.1-70B", "fp8", 4, ("llama-3.1-70b", "fp8", "dense")),
        ("meta-llama/Llama-2-7b-hf", "fp16/bf16", 1, ("llama-2-7b", "bf16", "dense, many KV heads")),
        ("mistralai/Mixtral-8x7B-v0.1", "fp16/bf16", 2, ("mixtral-8x7b", "bf16", "experts in bf16")),
        ("openai/gpt-oss-120b", "fp4", 2, ("gpt-oss-120b", "mxfp4", "experts in mxfp4")),
        ("Qwen/Qwen3-32B", "bf16(assumed)", 2, ("qwen3-32b", "bf16", "dense")),
        ("openai/gpt-oss-120b", "bf16(assumed)", 2, ("gpt-oss-120b", "mxfp4", "experts in mxfp4")),
        ("Qwen/Qwen3-32B-FP8", "as served", 2, ("qwen3-32b", "fp8", "dense")),
        ("openai/gpt-oss-120b", "as served", 2, ("gpt-oss-120b", "mxfp4", "experts in mxfp4")),
    ],
)
def test_names_of_models_and_precisions(model: str, precision: str, tensor_parallel: int, named: tuple[str, str, str]):
    case = case_of(row(model=model, precision=precision, tensor_parallel=tensor_parallel, tpot_mean_ms=30.0))
    assert (case.model, case.precision, case.family) == named


def test_measured_figures_are_medians_where_both_are_given():
    means = case_of(row(ttft_mean_ms=40.0, tpot_mean_ms=8.0, output_tokens=101.0)).measured
    assert (means.ttft_ms, means.tpot_ms, means.e2e_ms) == (40.0, 8.0, 840.0)
    medians = case_of(open_row(ttft_mean_ms=99.0, tpot_mean_ms=99.0)).measured
    assert (medians.ttft_ms, medians.tpot_ms, medians.e2e_ms) == (30.0, 8.0, 1000.0)


def test_a_series_that_names_an_impossible_layout_is_left_out_as_a_whole():
    big = {"model": "meta-llama/Llama-3.1-70B", "tpot_mean_ms": 60.0}
    found = select([row("1", **big), row("2", **big, tensor_parallel=4), row("3")])
    assert [case.row.row_id for case in found.cases] == ["3"]
    assert "does not fit" in found.left_out[0].reason
    assert "the whole layout is not published" in found.left_out[1].reason
    elsewhere = select([row("2", **big, tensor_parallel=4)], [row("1", **big)])
    assert elsewhere.cases == ()


def test_a_rate_that_cannot_be_served_is_left_out():
    """About 30 requests/s of 128 output tokens can be served in this way; 200 cannot."""
    found = select([open_row("1", request_rate_per_s=4.0), open_row("2", request_rate_per_s=200.0)])
    assert [case.row.row_id for case in found.cases] == ["1"]
    assert found.left_out[0].reason.startswith("saturated: in the simulation")


def test_the_roofline_by_hand():
    """Llama-3.1-8B: 6.98 G linear weights, 131,072 bytes of KV per token; 8 users of 576 tokens on average.

    (13.96 GB + 0.604 GB) / (0.92 x 3.35 TB/s) = 4.73 ms; a prompt token takes 13.96 G / (0.92 x 989 T/s) = 15.3 us.
    """
    load = ClosedLoop("llama-3.1-8b", "h100", "bf16", 1, users=8.0, prompt_tokens=512.0, output_tokens=128.0)
    assert decode_floor_ms(load) == pytest.approx(4.73, rel=0.01)
    assert prompt_token_s(load) == pytest.approx(15.3e-6, rel=0.01)


def test_contradicted_rows_by_hand():
    """16 users at 9 ms a token cannot be slower than 32 at 8 ms; 3 % may be noise, another length is another matter."""
    rows = [
        row("slow", concurrency=16.0, tpot_mean_ms=9.0),
        row("fast", concurrency=32.0, tpot_mean_ms=8.0),
        row("noise", concurrency=8.0, tpot_mean_ms=8.24),
        row("other", concurrency=8.0, tpot_mean_ms=20.0, prompt_tokens=2048.0),
    ]
    assert contradicted([case_of(one) for one in rows]) == {"slow"}
