"""Readings of one window to a snapshot."""

import math
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stack.exposition import readings_in
from stack.reading import GATEWAY, Counter, Distribution, Gauge, Histogram, Reading, View
from stack.signal_costs import GROUPS, NO_OBSERVATION, NOT_EXPORTED, SINGLE_SCRAPE
from stack.snapshot import FLEET, Oddity, Signal, Snapshot
from stack.window import snapshot_of

DATA = Path(__file__).parents[1] / "data"


def from_files(*names: str) -> Snapshot:
    return snapshot_of([one for name in names for one in readings_in((DATA / name).read_text(), name)], window_s=None)


def counted(replica: str, values: list[float], counter: Counter = Counter.FINISHED) -> list[Reading]:
    return [Reading(replica, 15.0 * place, counters={counter: value}) for place, value in enumerate(values)]


def test_the_prefix_hit_ratio_is_the_windows():
    snapshot = from_files("saturated_queue.prom", "prefix_hit_block32.prom")
    assert snapshot.value(Signal.PREFIX_HIT_RATIO) == pytest.approx(0.85, abs=0.005)
    assert snapshot.value(Signal.PREEMPTIONS) == 0
    assert snapshot.window_s is None
    assert snapshot.scrapes == 2
    assert snapshot.per_s(Signal.FINISHED) is None


def test_memory_pressure_shows_as_level_start_and_increase():
    snapshot = from_files("kvfull_preempt_drain.prom", "kvfull_preempt.prom")
    usage = snapshot.fact(Signal.KV_USAGE_RATIO)
    assert usage is not None
    assert usage.start == pytest.approx(0.84, abs=0.01)
    assert (usage.value, usage.peak) == (1.0, 1.0)
    assert snapshot.value(Signal.PREEMPTIONS) == 9
    assert snapshot.value(Signal.PREEMPTIONS, "smolkv/0") == 9


def test_a_slot_bound_queue_shows_free_memory_at_the_end():
    snapshot = from_files("kvfull_preempt.prom", "saturated_queue.prom")
    assert snapshot.value(Signal.RUNNING) == 16
    assert snapshot.value(Signal.WAITING) == 32
    assert snapshot.value(Signal.KV_USAGE_RATIO) == pytest.approx(0.41, abs=0.01)


def test_a_single_scrape_tells_ratios_since_start_and_no_load():
    snapshot = from_files("spec_ngram.prom")
    assert snapshot.scrapes == 1
    assert not snapshot.fleet
    assert snapshot.replicas == {"smol/0": {}}
    lifetime = snapshot.lifetime["smol/0"]
    assert lifetime[Signal.DRAFT_ACCEPT_RATIO].value == pytest.approx(15 / 491)
    assert lifetime[Signal.DRAFTED_TOKENS].value == 491
    assert Signal.RUNNING not in lifetime
    reasons = {missing.signal: missing.reason for missing in snapshot.missing}
    assert set(reasons) == {group.name for group in GROUPS}
    assert reasons[Signal.RUNNING] == SINGLE_SCRAPE
    assert reasons[Signal.GATEWAY_QUEUE] == NOT_EXPORTED
    assert all(missing.costs for missing in snapshot.missing)


def test_old_high_latency_stays_silent_in_a_quiet_window():
    snapshot = from_files("saturated_queue.prom", "saturated_queue.prom")
    assert snapshot.value(Signal.TTFT_MEAN_S) is None
    assert snapshot.value(Signal.PREFIX_HIT_RATIO) is None
    assert Signal.TTFT_P95_S in {one.signal for one in snapshot.missing if one.reason == NO_OBSERVATION}


@given(st.lists(st.lists(st.integers(0, 50), min_size=2, max_size=8), min_size=1, max_size=4))
def test_increases_are_never_negative_and_never_more_than_was_counted(segments):
    values: list[float] = []
    for segment in segments:  # each segment is one life of the process: counts start anew
        total = 0.0
        for added in segment:
            total += added
            values.append(total)
    snapshot = snapshot_of(counted("r1", values), window_s=None)
    found = snapshot.value(Signal.FINISHED)
    assert found is not None
    assert 0 <= found <= sum(map(sum, segments))
    went_down = any(late < early for early, late in pairwise(values))
    assert went_down == bool(snapshot.warnings)


def test_a_reset_is_a_gap_with_a_warning():
    snapshot = snapshot_of(counted("r1", [100, 110, 3, 8]), window_s=None)
    assert snapshot.value(Signal.FINISHED) == 10 + 5
    assert "r1: counters began anew" in snapshot.warnings[0]


def test_halves_give_start_and_trend():
    steady = snapshot_of(counted("r1", [0, 10, 20, 30, 40]), window_s=None).fact(Signal.FINISHED)
    faster = snapshot_of(counted("r1", [0, 10, 20, 50, 80]), window_s=None).fact(Signal.FINISHED)
    odd = snapshot_of(counted("r1", [0, 10, 20, 30]), window_s=None).fact(Signal.FINISHED)
    assert steady is not None
    assert (steady.value, steady.start, steady.trend_per_min) == (40, 20, 0)
    assert faster is not None
    assert (faster.value, faster.start) == (80, 20)
    assert faster.trend_per_min == pytest.approx(2 * 40 / 0.5)
    assert odd is not None
    assert odd.start == pytest.approx(15)
    assert odd.trend_per_min == pytest.approx(0)


def test_gauges_have_peak_age_and_slope():
    readings = [Reading("r1", 15.0 * place, gauges={Gauge.WAITING: waiting}) for place, waiting in enumerate((0, 9, 4))]
    fact = snapshot_of(readings, window_s=60, now_s=40.0).fact(Signal.WAITING, "r1")
    assert fact is not None
    assert (fact.value, fact.start, fact.peak, fact.age_s) == (4, 0, 9, 10.0)
    assert fact.trend_per_min == pytest.approx(8.0)


def test_readings_before_the_window_do_not_count():
    snapshot = snapshot_of(counted("r1", [0, 100, 110, 120]), window_s=30, now_s=45.0)
    assert snapshot.value(Signal.FINISHED) == 20
    assert snapshot.window_s == 30
    assert snapshot.per_s(Signal.FINISHED) == pytest.approx(20 / 30)


def test_a_silent_replica_is_missing_not_old_news():
    readings = counted("r1", [0, 5, 9]) + [replace(one, time_s=one.time_s + 600) for one in counted("r2", [0, 4, 8])]
    snapshot = snapshot_of(readings, window_s=60, now_s=630.0)
    assert set(snapshot.replicas) == {"r2"}


def test_a_gauge_that_stopped_shows_its_age_and_nan_is_named():
    readings = [
        Reading("r1", 0.0, gauges={Gauge.KV_USAGE_RATIO: 0.5}, counters={Counter.FINISHED: 1}),
        Reading("r1", 15.0, gauges={Gauge.KV_USAGE_RATIO: math.nan}, counters={Counter.FINISHED: math.nan}),
    ]
    snapshot = snapshot_of(readings, window_s=60, now_s=15.0)
    fact = snapshot.fact(Signal.KV_USAGE_RATIO, "r1")
    assert fact is not None
    assert (fact.value, fact.age_s) == (0.5, 15.0)
    assert snapshot.value(Signal.KV_USAGE_RATIO) is None, "the fleet's present use is not known"
    assert snapshot.value(Signal.FINISHED) is None
    assert any("kv_usage_ratio is NaN" in warning for warning in snapshot.warnings)


def test_scrapes_out_of_order_are_put_in_order_with_a_warning():
    readings = counted("r1", [0, 5, 9])
    snapshot = snapshot_of([readings[1], readings[0], readings[2]], window_s=None)
    assert snapshot.value(Signal.FINISHED) == 9
    assert "out of order" in snapshot.warnings[0]


@pytest.mark.parametrize(
    ("values", "oddity"),
    [
        ([10.0, 20.0, 30.0, 40.0], None),
        ([10.0, 20.0, 5.0, 9.0], Oddity.RESTARTED),
        ([10.0, 905.0, 12.0, 910.0, 15.0], Oddity.DUPLICATED),
    ],
)
def test_a_restart_is_told_from_two_processes_under_one_name(values: list[float], oddity: Oddity | None):
    snapshot = snapshot_of(counted("r1", values) + counted("r2", [1.0, 2.0, 3.0]), window_s=60.0)
    assert snapshot.oddities == ({} if oddity is None else {"r1": oddity})


def test_two_samples_of_one_moment_and_samples_from_the_future_are_told():
    twice = [*counted("r1", [10.0, 20.0]), *counted("r1", [11.0, 21.0])]
    assert snapshot_of(twice, window_s=60.0).oddities == {"r1": Oddity.DUPLICATED}
    assert snapshot_of(counted("r1", [10.0, 20.0]), window_s=60.0, now_s=14.0).oddities == {}
    assert snapshot_of(counted("r1", [10.0, 20.0]), window_s=60.0, now_s=12.0).oddities == {"r1": Oddity.AHEAD}


def test_fleet_counts_add_up_and_quantiles_come_from_merged_histograms():
    def ttft(replica: str, values: tuple[float, ...]) -> list[Reading]:
        bounds = (0.1, 1.0, 10.0, math.inf)
        start = Histogram(bounds, (0.0,) * 4, 0.0)
        end = Histogram(bounds, tuple(float(sum(value <= bound for value in values)) for bound in bounds), sum(values))
        return [
            Reading(replica, 0.0, counters={Counter.FINISHED: 0}, histograms={Distribution.TTFT_S: start}),
            Reading(replica, 60.0, counters={Counter.FINISHED: len(values)}, histograms={Distribution.TTFT_S: end}),
        ]

    snapshot = snapshot_of(ttft("fast", (0.05,) * 90) + ttft("slow", (5.0,) * 10), window_s=None)
    assert snapshot.value(Signal.FINISHED) == 100
    assert snapshot.value(Signal.TTFT_MEAN_S) == pytest.approx((4.5 + 50) / 100)
    p95 = snapshot.value(Signal.TTFT_P95_S)
    assert p95 is not None
    assert 1.0 < p95 <= 10.0
    assert snapshot.value(Signal.TTFT_P50_S, "fast") == pytest.approx(0.05)
    assert snapshot.value(Signal.TTFT_P95_S, "slow") is None, "ten observations make no P95"


def test_a_quantile_beyond_the_buckets_is_missing_with_the_bound():
    bounds = (1.0, math.inf)
    readings = [
        Reading("r1", 0.0, histograms={Distribution.E2E_S: Histogram(bounds, (0, 0), 0)}),
        Reading("r1", 60.0, histograms={Distribution.E2E_S: Histogram(bounds, (50, 200), 9000)}),
    ]
    snapshot = snapshot_of(readings, window_s=None)
    assert snapshot.value(Signal.E2E_P99_S) is None
    assert "above the largest bucket" in next(one.reason for one in snapshot.missing if one.signal == Signal.E2E_P99_S)


def test_the_gateway_adds_what_engines_cannot_see():
    engine = [
        Reading("r1", 0.0, {Gauge.RUNNING: 1}, {Counter.FINISHED: 0, Counter.SHED: 0}),
        Reading("r1", 60.0, {Gauge.RUNNING: 2}, {Counter.FINISHED: 50, Counter.SHED: 1}),
    ]
    server = [
        Reading(
            "r1",
            time_s,
            {Gauge.GATEWAY_WEIGHT: 20, Gauge.GATEWAY_LIMIT: 8},
            {Counter.ARRIVED: count},
            view=View.GATEWAY,
        )
        for time_s, count in ((0.0, 10), (60.0, 62))
    ]
    gateway = [
        Reading(
            GATEWAY,
            time_s,
            {Gauge.GATEWAY_QUEUE: 3},
            {Counter.ARRIVED: count, Counter.SHED: count / 10},
            view=View.GATEWAY,
        )
        for time_s, count in ((0.0, 0), (60.0, 70))
    ]
    snapshot = snapshot_of(engine + server + gateway, window_s=None)
    assert set(snapshot.replicas) == {"r1"}
    assert snapshot.value(Signal.ARRIVED, "r1") == 52
    assert snapshot.value(Signal.ARRIVED) == 70
    assert snapshot.value(Signal.SHED) == 1 + 7
    assert snapshot.value(Signal.GATEWAY_QUEUE) == 3
    assert snapshot.settings == {"routing_weight": {"r1": 20}, "replica_concurrency_cap": {"r1": 8}}


def test_without_a_gateway_arrivals_follow_from_what_ended_and_what_is_inside():
    readings = [
        Reading("r1", 0.0, {Gauge.RUNNING: 2, Gauge.WAITING: 0}, {Counter.FINISHED: 10, Counter.ABORTED: 0}),
        Reading("r1", 60.0, {Gauge.RUNNING: 4, Gauge.WAITING: 3}, {Counter.FINISHED: 20, Counter.ABORTED: 1}),
    ]
    assert snapshot_of(readings, window_s=None).value(Signal.ARRIVED) == 10 + 1 + 5


def test_a_signal_that_one_replica_lacks_is_listed_for_that_replica():
    readings = [
        Reading(name, time_s, gauges={Gauge.RUNNING: 1} | ({Gauge.KV_USAGE_RATIO: 0.1} if name == "r1" else {}))
        for time_s in (0.0, 15.0)
        for name in ("r1", "r2")
    ]
    missing = snapshot_of(readings, window_s=None).missing
    assert [one.target for one in missing if one.signal == Signal.KV_USAGE_RATIO] == ["r2"]
    assert [one.target for one in missing if one.signal == Signal.WAITING] == [FLEET]


def test_prefix_hits_are_those_of_the_window():
    readings = [
        Reading("r1", 0.0, prefixes=(("a", 512, 100), ("b", 64, 5))),
        Reading("r1", 15.0, prefixes=(("a", 512, 101), ("b", 64, 9), ("c", 32, 2))),
    ]
    assert snapshot_of(readings, window_s=None).prefixes["r1"] == (("b", 64, 4), ("c", 32, 2), ("a", 512, 1))


def test_no_reading_at_all_is_an_empty_snapshot_with_everything_missing():
    snapshot = snapshot_of([], window_s=60, now_s=100.0)
    assert snapshot.scrapes == 0
    assert len(snapshot.missing) == len(GROUPS)


def test_a_snapshot_of_four_replicas_takes_milliseconds():
    (base,) = readings_in((DATA / "prefix_hit_block32.prom").read_text(), "base")
    readings = [
        replace(
            base,
            replica=f"r{index}",
            time_s=15.0 * place,
            counters={name: value * (1 + place) for name, value in base.counters.items()},
            histograms={
                name: Histogram(
                    one.bounds, tuple(count * (1 + place) for count in one.cumulative), one.total * (1 + place)
                )
                for name, one in base.histograms.items()
            },
        )
        for place in range(13)
        for index in range(4)
    ]
    best_s = math.inf
    for _ in range(5):
        start_s = time.perf_counter()
        snapshot_of(readings, window_s=180.0, now_s=180.0)
        best_s = min(best_s, time.perf_counter() - start_s)
    assert best_s < 0.02


def test_a_replica_that_just_started_does_not_make_the_window_a_single_scrape():
    readings = [*counted("r1", [0, 5, 9]), Reading("r2", 30.0, {Gauge.RUNNING: 1})]
    snapshot = snapshot_of(readings, window_s=60, now_s=30.0)
    assert snapshot.scrapes == 3
    assert snapshot.value(Signal.RUNNING, "r2") == 1
    assert Signal.FINISHED in {one.signal for one in snapshot.missing if one.target == "r2"}
