"""The diagnosis of real scrapes and logs, each with what its load is known to have been."""

from pathlib import Path

import pytest
from made_snapshots import context

from harness.diagnosis import Diagnosis
from skills.diagnose import diagnose
from stack.errors import InputError
from stack.layer import Layer
from stack.source import snapshot_from

OWN = Path(__file__).parents[1] / "data"
PUBLIC = Path(__file__).parents[2].parent / "shared" / "metrics" / "public"
needs_public = pytest.mark.skipif(not PUBLIC.parents[1].is_dir(), reason="the shared folder is not here")


def diagnosed(*paths: Path) -> Diagnosis:
    snapshot = snapshot_from([str(path) for path in paths])
    return diagnose(snapshot, context(snapshot))


def own(*names: str) -> Diagnosis:
    return diagnosed(*(OWN / f"{name}.prom" for name in names))


def test_memory_bound_is_cache_first():
    problem = own("kvfull_preempt_drain", "kvfull_preempt").problems[0]
    assert problem.layer is Layer.CACHE
    assert problem.evidence["kv_usage_start_ratio"] == pytest.approx(0.84, abs=0.01)
    assert (problem.evidence["kv_usage_ratio"], problem.evidence["preemptions"]) == (1.0, 9.0)


def test_slot_bound_is_batching_first_and_past_pressure_ranks_below():
    problems = own("kvfull_preempt", "saturated_queue").problems
    assert (problems[0].layer, problems[0].cause) == (Layer.BATCHING, "running_cap_binds")
    assert (problems[0].evidence["running_requests"], problems[0].evidence["waiting_requests"]) == (16.0, 32.0)
    assert problems[0].evidence["kv_usage_ratio"] == pytest.approx(0.405, abs=0.01)
    assert [one.cause for one in problems[1:]] == ["kv_pressure_past"]


def test_a_counter_that_stopped_is_silent_and_the_hit_ratio_is_that_of_the_window():
    found = own("saturated_queue", "prefix_hit_block32")
    assert found.healthy
    reuse = next(one for one in found.findings if one.cause == "prefix_reuse")
    assert reuse.evidence["prefix_hit_ratio"] == pytest.approx(0.85, abs=0.01)


@pytest.mark.parametrize(
    "names", [("idle_tiny",), ("idle_allflags",), ("steady_c4",), ("prefix_hit",), ("steady_c4", "prefix_hit")]
)
def test_healthy_servers_are_healthy(names):
    assert own(*names).problems == ()


def test_rejected_drafts_are_execution():
    problem = own("spec_ngram").problems[0]
    assert (problem.layer, problem.evidence["claim_about"]) == (Layer.EXECUTION, "configuration")
    assert problem.evidence["draft_accept_ratio"] == pytest.approx(0.031, abs=0.001)


@needs_public
@pytest.mark.parametrize(
    ("name", "layer", "cause"),
    [
        ("vllm6337_8115_ttft_broken_hist.prom", Layer.OBSERVABILITY, "metrics_implausible"),
        ("vllm37307_long_prefill.log", Layer.BATCHING, "prefill_starves_decode"),
        ("vllm6737_kv_full.log", Layer.CACHE, "kv_pressure"),
    ],
)
def test_public_reports(name, layer, cause):
    problem = diagnosed(PUBLIC / name).problems[0]
    assert (problem.layer, problem.cause) == (layer, cause)


@needs_public
def test_old_names_are_read():
    snapshot = snapshot_from([str(PUBLIC / "kubeai_vllm_v0_metrics.prom")])
    assert len(snapshot.lifetime) == 2
    assert any(one.cause == "prefix_caching_off" for one in diagnose(snapshot, context(snapshot)).findings)


@needs_public
def test_two_moments_in_one_file_are_refused_and_as_two_files_show_the_hot_rank(tmp_path):
    whole = PUBLIC / "vllm48808_dp_imbalance.prom"
    with pytest.raises(InputError, match="two moments"):
        diagnosed(whole)
    lines = [line for line in whole.read_text().splitlines() if not line.startswith("#")]
    before, after = tmp_path / "before.prom", tmp_path / "after.prom"
    before.write_text("\n".join(lines[:8]) + "\n")
    after.write_text("\n".join(lines[8:]) + "\n")
    problems = diagnosed(before, after).problems
    hot = next(one for one in problems if one.cause == "hot_replica")
    assert hot.target.endswith("/0")
    assert hot.evidence["requests_inside"] == 27.0
