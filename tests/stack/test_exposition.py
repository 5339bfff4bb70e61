"""Prometheus text of vLLM and HAProxy to readings, and back."""

import math
from pathlib import Path

import pytest

from stack.errors import InputError
from stack.exposition import readings_in, render
from stack.reading import GATEWAY, Counter, Distribution, Gauge, Histogram, Reading, View

DATA = Path(__file__).parents[1] / "data"
PUBLIC = Path(__file__).parents[2].parent / "shared" / "metrics" / "public"
needs_public = pytest.mark.skipif(not PUBLIC.is_dir(), reason="the public captures are not on this machine")


def read(name: str) -> list[Reading]:
    return readings_in((DATA / name).read_text(), name)


def test_a_line_too_long_to_be_read_in_time_is_refused_at_once():
    labels = ",".join(f'l{n}="x"' for n in range(200_000))
    with pytest.raises(InputError, match=r"line 1: expected at most 65536 characters, found [0-9]{7}"):
        readings_in(f"vllm:num_requests_running{{{labels}}} 1\n", "long.prom")


def test_a_scrape_of_todays_vllm_is_one_reading_with_its_configuration():
    (reading,) = read("kvfull_preempt.prom")
    assert reading.replica == "smolkv/0"
    assert reading.gauges == {Gauge.RUNNING: 16, Gauge.WAITING: 10, Gauge.KV_USAGE_RATIO: 1.0}
    assert reading.counters[Counter.PREEMPTIONS] == 15
    assert reading.counters[Counter.FINISHED] == 14
    assert reading.histograms[Distribution.TTFT_S].count == 30
    assert reading.configuration["block_size"] == "32"
    assert reading.configuration["num_gpu_blocks"] == "80"
    assert reading.configuration["started_s"] == pytest.approx(1796005005.0, abs=1)


def test_haproxy_gives_one_reading_per_server_and_one_for_the_gateway():
    first, second, gateway = read("haproxy_exporter.prom")
    assert (first.replica, second.replica, gateway.replica) == ("r1", "r2", GATEWAY)
    assert first.view is View.GATEWAY
    assert first.gauges[Gauge.GATEWAY_WEIGHT] == 100
    assert first.gauges[Gauge.GATEWAY_LIMIT] == 16
    assert first.gauges[Gauge.UP] == 1
    assert first.counters[Counter.ARRIVED] == 188 + 93 + 1
    assert gateway.counters[Counter.ARRIVED] == 570, "the exporter's own frontend serves no users"


@pytest.mark.parametrize("path", sorted(DATA.glob("*.prom")), ids=lambda path: path.stem)
def test_what_is_rendered_reads_back_the_same(path):
    readings = readings_in(path.read_text(), path.name)
    again = readings_in(render(readings), "rendered")
    for before, after in zip(readings, again, strict=True):
        assert (after.replica, after.view) == (before.replica, before.view)
        assert after.gauges == before.gauges
        assert after.counters == before.counters
        assert after.histograms == before.histograms
        assert after.configuration == before.configuration


def test_readings_that_hold_both_views_render_to_both_exporters():
    replica = Reading(
        "r1",
        10.0,
        gauges={Gauge.RUNNING: 3, Gauge.GATEWAY_QUEUE: 2, Gauge.GATEWAY_WEIGHT: 50, Gauge.UP: 1},
        counters={Counter.FINISHED: 7, Counter.ARRIVED: 9},
        histograms={Distribution.TTFT_S: Histogram((0.1, math.inf), (4, 7), 1.5)},
        configuration={"model_name": 'odd "name"\\'},
    )
    gateway = Reading(GATEWAY, 10.0, gauges={Gauge.GATEWAY_QUEUE: 5}, counters={Counter.SHED: 4})
    engine, server, total = readings_in(render([replica, gateway]), "page")
    assert engine.gauges == {Gauge.RUNNING: 3}
    assert engine.configuration["model_name"] == 'odd "name"\\'
    assert engine.histograms == replica.histograms
    assert server.gauges == {Gauge.GATEWAY_QUEUE: 2, Gauge.GATEWAY_WEIGHT: 50, Gauge.UP: 1}
    assert server.counters[Counter.ARRIVED] == 9
    assert total.gauges[Gauge.GATEWAY_QUEUE] == 5, "the queue at servers is not counted twice"
    assert total.counters[Counter.SHED] == 4


OLD = """
vllm:num_requests_running{model_name="m"} 3
vllm:num_requests_waiting{model_name="m"} 2
vllm:num_requests_swapped{model_name="m"} 4
vllm:gpu_cache_usage_perc{model_name="m"} 0.5
vllm:gpu_prefix_cache_queries_total{model_name="m"} 10
vllm:gpu_prefix_cache_hits_total{model_name="m"} 4
vllm:time_per_output_token_seconds_count{model_name="m"} 8
vllm:time_per_output_token_seconds_sum{model_name="m"} 0.8
"""


@pytest.mark.parametrize("prefix", ["vllm:", "vllm_"])
def test_old_names_are_read_with_either_prefix(prefix):
    (reading,) = readings_in(OLD.replace("vllm:", prefix), "old")
    assert reading.gauges == {Gauge.RUNNING: 3, Gauge.WAITING: 6, Gauge.KV_USAGE_RATIO: 0.5}
    assert reading.counters == {Counter.PREFIX_QUERIED_TOKENS: 10, Counter.PREFIX_HIT_TOKENS: 4}
    assert reading.histograms[Distribution.ITL_S] == Histogram((math.inf,), (8,), 0.8)


def test_the_new_name_wins_where_both_are_exported():
    text = OLD + (
        'vllm:kv_cache_usage_perc{model_name="m"} 0.9\n'
        'vllm:inter_token_latency_seconds_count{model_name="m"} 9\n'
        'vllm:prefix_cache_hits_total{model_name="m"} 5\n'
    )
    (reading,) = readings_in(text, "both")
    assert reading.gauges[Gauge.KV_USAGE_RATIO] == 0.9
    assert reading.histograms[Distribution.ITL_S].count == 9
    assert reading.counters[Counter.PREFIX_HIT_TOKENS] == 5


def test_unfinished_answers_are_not_finished_requests():
    text = "".join(
        f'vllm:request_success_total{{finished_reason="{reason}"}} {count}\n'
        for reason, count in (("stop", 5), ("length", 2), ("abort", 3), ("error", 1))
    )
    (reading,) = readings_in(text, "x")
    assert reading.counters == {Counter.FINISHED: 7, Counter.ABORTED: 3, Counter.ERRORS: 1}


def test_engines_of_one_scrape_are_separate_replicas_and_shared_counts_are_not_given_to_each():
    text = "".join(f'vllm:num_requests_running{{engine="{engine}",model_name="m"}} {engine}\n' for engine in (0, 1))
    text += 'vllm:admission_rejections_total{model_name="m",reason="x"} 6\nprocess_start_time_seconds 5\n'
    first, second = readings_in(text, "x")
    assert (first.replica, second.replica) == ("m/0", "m/1")
    assert (first.gauges[Gauge.RUNNING], second.gauges[Gauge.RUNNING]) == (0, 1)
    assert Counter.SHED not in {**first.counters, **second.counters}
    assert "admission_rejections_total" in first.warnings[0]
    assert second.configuration["started_s"] == 5


RUNNING = 'vllm:num_requests_running{engine="0",model_name="m"}'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f"{RUNNING} 1\n{RUNNING} 2\n", ["line 2", "line 1", "two moments"]),
        (f"{RUNNING} NaN\n", ["line 1", "NaN"]),
        (f"# a\n{RUNNING} -3\n", ["line 2", "negative"]),
        (f"{RUNNING} +Inf\n", ["line 1", "infinite"]),
        (f"{RUNNING} many\n", ["line 1", "Prometheus text"]),
        ('vllm:kv_cache_usage_perc{model_name="m"} 84\n', ["line 1", "above 1"]),
        ("vllm:num_requests_running{engine=\n", ["line 1"]),
        ("up 1\npython_info 1\n", ["no known metric"]),
        (f"# TYPE x gauge\n{RUNNING} 1", ["line 2", "cut off"]),
        ('vllm:time_to_first_token_seconds_bucket{le="a"} 1\n', ["line 1", "le='a'"]),
        (
            'vllm:time_to_first_token_seconds_bucket{le="1"} 5\nvllm:time_to_first_token_seconds_bucket{le="2"} 4\n',
            ["line 2", "below the one before"],
        ),
        ("hello world, this is prose\n", ["line 1", "expected"]),
    ],
)
def test_bad_text_is_refused_with_its_place(text, words):
    with pytest.raises(InputError) as caught:
        readings_in(text, "bad.prom")
    message = str(caught.value)
    assert message.startswith("bad.prom")
    assert "\n" not in message
    for word in words:
        assert word in message


def test_a_scrape_cut_off_anywhere_is_refused_or_whole_lines_short():
    text = (DATA / "saturated_queue.prom").read_text()
    for end in range(2000, len(text) - 1, 1733):
        if text[end - 1] == "\n":
            continue
        with pytest.raises(InputError, match=r"cut\.prom"):
            readings_in(text[:end], "cut.prom")


def test_a_live_scrape_leaves_impossible_values_out_and_says_so():
    (reading,) = readings_in(
        f'{RUNNING} NaN\nvllm:num_requests_waiting{{engine="0",model_name="m"}} 4\n', "live", strict=False
    )
    assert reading.gauges == {Gauge.WAITING: 4}
    assert "NaN" in reading.warnings[0]


@needs_public
def test_a_v0_scrape_with_two_models_gives_two_replicas():
    text = (PUBLIC / "kubeai_vllm_v0_metrics.prom").read_text()
    first, second = readings_in(text, "kubeai")
    assert first.gauges[Gauge.WAITING] == 2
    assert first.gauges[Gauge.KV_USAGE_RATIO] == pytest.approx(0.00262, abs=1e-5)
    assert first.histograms[Distribution.ITL_S].count == 2537
    assert second.gauges == {Gauge.WAITING: 3}


@needs_public
def test_two_moments_in_one_file_are_refused_not_summed():
    with pytest.raises(InputError, match=r"line 12.*line 3.*two moments"):
        readings_in((PUBLIC / "vllm48808_dp_imbalance.prom").read_text(), "dp")


@needs_public
def test_a_broken_histogram_is_kept_and_an_incomplete_one_is_named():
    cut, broken = readings_in((PUBLIC / "vllm6337_8115_ttft_broken_hist.prom").read_text(), "broken")
    assert not cut.histograms
    assert "+Inf" in cut.warnings[0]
    assert broken.histograms[Distribution.TTFT_S].count == 8060


@needs_public
def test_speculation_counters_are_read():
    (reading,) = readings_in((PUBLIC / "miaai_dspark_spec_decode.prom").read_text(), "spec")
    assert reading.counters == {Counter.DRAFTS: 105, Counter.DRAFTED_TOKENS: 630, Counter.ACCEPTED_TOKENS: 149}


def test_replicas_behind_one_address_keep_their_instance_names():
    page = render([Reading(name, None, gauges={Gauge.RUNNING: 1}) for name in ("r1", "r2")])
    assert [one.replica for one in readings_in(page, "page", replica="10.0.0.1:8000")] == ["r1", "r2"]
    assert [one.replica for one in readings_in(f"{RUNNING} 1\n", "page", replica="10.0.0.1:8000")] == ["10.0.0.1:8000"]
