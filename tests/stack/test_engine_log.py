"""vLLM's log lines to readings."""

from pathlib import Path

import pytest

from stack.engine_log import looks_like_log, readings_in_log
from stack.errors import InputError
from stack.reading import Counter, Gauge
from stack.snapshot import Signal
from stack.window import snapshot_of

PUBLIC = Path(__file__).parents[2].parent / "shared" / "metrics" / "public"
needs_public = pytest.mark.skipif(not PUBLIC.is_dir(), reason="the public logs are not on this machine")

V0 = (
    "INFO {time} metrics.py:345] Avg prompt throughput: 12.5 tokens/s, Avg generation throughput: 200.0 tokens/s, "
    "Running: 20 reqs, Swapped: 3 reqs, Pending: 7 reqs, GPU KV cache usage: 91.5%, CPU KV cache usage: 2.0%."
)
V1 = (
    "(APIServer pid=81) INFO {time} [loggers.py:259] Engine 00{engine}: Avg prompt throughput: 100.0 tokens/s, "
    "Avg generation throughput: 40.0 tokens/s, Running: 4 reqs, Waiting: 6 reqs, GPU KV cache usage: 50.0%, "
    "Prefix cache hit rate: 25.0%, External prefix cache hit rate: 99.0%"
)


def v0(*times: str) -> str:
    return "\n".join(V0.format(time=time) for time in times)


def v1(*times: str, engine: int = 0) -> str:
    return "\n".join(V1.format(time=time, engine=engine) for time in times)


def test_a_v0_line():
    (reading,) = readings_in_log(v0("07-24 09:55:30"), "engine.log")
    assert reading.gauges == {
        Gauge.RUNNING: 20,
        Gauge.WAITING: 10,
        Gauge.KV_USAGE_RATIO: pytest.approx(0.915),
        Gauge.PROMPT_TOKENS_PER_S: 12.5,
        Gauge.GENERATION_TOKENS_PER_S: 200.0,
    }


def test_a_v1_line():
    (reading,) = readings_in_log(v1("03-17 15:38:10"), "engine.log")
    assert reading.gauges[Gauge.WAITING] == 6
    assert reading.gauges[Gauge.KV_USAGE_RATIO] == 0.5
    assert reading.gauges[Gauge.LOGGED_PREFIX_HIT_RATIO] == 0.25


def test_engines_of_one_log_are_separate_replicas_and_sums_over_them_are_passed_over():
    text = "\n".join(
        [
            v1("03-17 15:38:10"),
            v1("03-17 15:38:10", engine=1),
            v1("03-17 15:38:10").replace("Engine 000", "2 Engines Aggregated"),
        ]
    )
    assert [reading.replica for reading in readings_in_log(text, "x")] == ["engine/000", "engine/001"]


def test_times_run_on_over_the_new_year():
    first, second = readings_in_log(v0("12-31 23:59:55", "01-01 00:00:05"), "x")
    assert first.time_s is not None
    assert second.time_s is not None
    assert second.time_s - first.time_s == 10


def test_the_leap_day_is_a_day():
    first, second = readings_in_log(v0("02-28 23:59:55", "02-29 00:00:00"), "x")
    assert (second.time_s or 0) - (first.time_s or 0) == 5


def test_logged_rates_become_token_counts():
    snapshot = snapshot_of(readings_in_log(v1(*(f"03-17 15:38:{second}0" for second in range(4))), "x"), window_s=None)
    assert snapshot.value(Signal.PROMPT_TOKENS) == pytest.approx(3000)
    assert snapshot.value(Signal.GENERATION_TOKENS) == pytest.approx(1200)
    assert snapshot.per_s(Signal.GENERATION_TOKENS) == pytest.approx(40)


def test_an_idle_gap_is_not_filled_with_tokens():
    times = ("03-17 15:00:00", "03-17 15:00:10", "03-17 15:00:20", "03-17 18:00:00")
    snapshot = snapshot_of(readings_in_log(v1(*times), "x"), window_s=None)
    assert snapshot.value(Signal.PROMPT_TOKENS) == pytest.approx(3000)


def test_preemption_warnings_and_out_of_memory_are_kept():
    text = "\n".join(
        [
            v0("07-24 09:55:30"),
            "WARNING 07-24 09:55:33 scheduler.py:706] Sequence group 1 is preempted by PreemptionMode.RECOMPUTE mode "
            "because there is not enough KV cache space. total_num_cumulative_preemption=51",
            v0("07-24 09:55:35"),
            "ERROR 07-24 09:55:36 torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",
            v0("07-24 09:55:40"),
        ]
    )
    readings = readings_in_log(text, "x.log")
    assert [reading.counters[Counter.PREEMPTIONS] for reading in readings] == [50, 51, 51]
    snapshot = snapshot_of(readings, window_s=None)
    assert snapshot.value(Signal.PREEMPTIONS) == 1
    assert any(warning.startswith("x.log, line 4: out of memory") for warning in snapshot.warnings)


def test_speculation_lines_add_up():
    drafts = "INFO 03-17 15:38:{second} SpecDecoding metrics: Accepted: {taken} tokens, Drafted: {drafted} tokens"
    text = "\n".join(
        [
            drafts.format(second="09", taken=10, drafted=40),
            v1("03-17 15:38:10"),
            drafts.format(second=19, taken=30, drafted=60),
            v1("03-17 15:38:20"),
        ]
    )
    snapshot = snapshot_of(readings_in_log(text, "x"), window_s=None)
    assert snapshot.value(Signal.DRAFT_ACCEPT_RATIO) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("INFO 07-24 09:55:30 hello\n", ["no vLLM status line"]),
        (v0("07-24 09:55:30", "07-24 09:55:20"), ["line 2", "out of order"]),
        (v0("at noon"), ["line 1", "without a time"]),
        (v0("02-31 10:00:00"), ["line 1", "without a time"]),
        (v0("07-24 09:55:30")[:140], ["line 1", "cut off"]),
        (v0("07-24 09:55:30").replace("91.5%", "915%"), ["line 1", "at most 100"]),
        (v0("07-24 09:55:30").replace("Running: 20", "Running: nan"), ["line 1"]),
        (v0("07-24 09:55:30").replace("Pending: 7", "Pending: -7"), ["line 1", "-7"]),
    ],
)
def test_bad_logs_are_refused_with_their_place(text, words):
    with pytest.raises(InputError) as caught:
        readings_in_log(text, "bad.log")
    assert str(caught.value).startswith("bad.log")
    for word in words:
        assert word in str(caught.value)


@needs_public
@pytest.mark.parametrize(
    ("name", "running", "waiting", "kv"),
    [("vllm37307_long_prefill.log", 34, 66, 0.654), ("vllm6737_kv_full.log", 219, 768, 1.0)],
)
def test_public_logs(name, running, waiting, kv):
    text = (PUBLIC / name).read_text()
    assert looks_like_log(text)
    snapshot = snapshot_of(readings_in_log(text, name), window_s=None)
    assert snapshot.scrapes == 5
    assert snapshot.value(Signal.RUNNING) == running
    assert snapshot.value(Signal.WAITING) == waiting
    assert snapshot.value(Signal.KV_USAGE_RATIO) == pytest.approx(kv)
