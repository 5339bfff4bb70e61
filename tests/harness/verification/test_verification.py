"""Error rates of the verdict on made-up series, and the cheats it must see through.

The series follow the study the margins come from: log latency with first-order autocorrelated noise per replica
(0.8 at 5 s, sd 12 %) and shared by the fleet (0.95, sd 10 %), rising with load; 60 s blocks.
"""

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from made_fleet import autocorrelated

from harness.outcome import Measured
from harness.policy import Policy
from harness.verification.backlog import judgeable
from harness.verification.block import Block, BlockLog, joined
from harness.verification.goal import Goal
from harness.verification.metric import share_within
from harness.verification.statistics import student_quantile
from harness.verification.verify import verify
from stack.snapshot import Fact, Signal, Snapshot

POLICY = Policy.load()
FLEET_GOAL = Goal(("itl_mean_s", "e2e_per_token_s"))
PER_BLOCK = 12
BEFORE = 20
RUNS = 40


def values(latency_s: float, offered: float, served: float = 1.0, errors: float = 0.0) -> dict[Signal, float]:
    return {
        Signal.ARRIVED: offered,
        Signal.FINISHED: offered * served,
        Signal.ERRORS: errors,
        Signal.ITL_MEAN_S: latency_s / 10,
        Signal.ITL_P99_S: latency_s / 3,
        Signal.TTFT_MEAN_S: latency_s,
        Signal.TTFT_P99_S: 3 * latency_s,
        Signal.E2E_MEAN_S: latency_s * 10,
        Signal.OUTPUT_TOKENS_MEAN: 100.0,
        Signal.PROMPT_TOKENS_MEAN: 1000.0,
    }


def series(
    seed: int,
    effect: float = 0.0,
    load_shift: float = 0.0,
    *,
    replicas: int = 4,
    after: int = 15,
    fault: float = 0.0,
    fault_blocks: int = 0,
    burst: float = 0.0,
) -> tuple[list[Block], list[Block]]:
    """Blocks before and after a change on r0; with one replica, the fleet is that replica."""
    rng = np.random.default_rng(seed)
    count, split = (BEFORE + after) * PER_BLOCK, BEFORE * PER_BLOCK
    load = 0.5 * np.exp(autocorrelated(rng, count, 0.95, 0.15))
    if burst:
        load = load * np.repeat(rng.gamma(1 / burst, burst, count // PER_BLOCK), PER_BLOCK)
    load[split:] *= 1 + load_shift
    load = np.clip(load, 0.05, 0.93)
    shared = autocorrelated(rng, count, 0.95, 0.10)
    latency = []
    for replica in range(replicas):
        line = np.log(0.2 / (1 - load)) + shared + autocorrelated(rng, count, 0.8, 0.12)
        if replica == 0:
            line[split:] += np.log1p(effect)
            line[split - fault_blocks * PER_BLOCK : split] += np.log1p(fault)
        latency.append(np.exp(line))
    blocks = []
    for b in range(BEFORE + after):
        part = slice(b * PER_BLOCK, (b + 1) * PER_BLOCK)
        offered = float(rng.poisson(load[part].mean() * 600) + 1)
        each = {f"r{i}": values(line[part].mean(), offered / replicas) for i, line in enumerate(latency)}
        fleet = values(float(np.mean([line[part].mean() for line in latency])), offered)
        blocks.append(Block(b * 60.0, (b + 1) * 60.0, fleet, each))
    return blocks[:BEFORE], blocks[BEFORE:]


def verdicts(goal: Goal, **case: float) -> Counter[Measured]:
    """Verdicts over RUNS series, each looked at as often as the policy looks."""
    found: Counter[Measured] = Counter()
    for seed in range(RUNS):
        before, after = series(seed, **case)  # type: ignore[arg-type]
        for look_s in POLICY.verification.looks_s:
            measured = verify(before, after[: int(look_s / 60)], goal, POLICY).measured
            if measured in (Measured.IMPROVED, Measured.WORSE):
                break
        found[measured] += 1
    return found


@pytest.mark.parametrize(
    ("case", "improved", "worse"),
    [
        # limits in percent: (at least, at most)
        ({}, (0, 15), (0, 15)),
        ({"effect": 0.3}, (0, 2), (60, 100)),
        ({"effect": 0.3, "load_shift": -0.3}, (0, 2), (0, 100)),
        ({"effect": -0.3}, (75, 100), (0, 0)),
        ({"burst": 0.3}, (0, 15), (0, 15)),
        ({"effect": -0.4, "burst": 0.3}, (75, 100), (0, 5)),
        ({"effect": -0.05, "fault": 0.8, "fault_blocks": 4}, (60, 100), (0, 10)),
    ],
)
def test_error_rates_against_the_own_past(case, improved, worse):
    found = verdicts(FLEET_GOAL, replicas=1, **case)
    assert improved[0] <= 100 * found[Measured.IMPROVED] / RUNS <= improved[1], found
    assert worse[0] <= 100 * found[Measured.WORSE] / RUNS <= worse[1], found


def changed(blocks: list[Block], served: float, errors: float, faster: float) -> list[Block]:
    def fleet(block: Block) -> dict[Signal, float]:
        old = block.fleet
        return values(old[Signal.TTFT_MEAN_S] * faster, old[Signal.ARRIVED], served, errors * old[Signal.ARRIVED])

    return [replace(block, fleet=fleet(block)) for block in blocks]


@pytest.mark.parametrize(("served", "errors"), [(0.7, 0.3), (0.7, 0.0), (0.95, 0.05)])
def test_being_faster_by_doing_less_work_is_worse(served: float, errors: float):
    before, after = series(1, replicas=1)
    found = verify(before, changed(after[:8], served, errors, 0.5), FLEET_GOAL, POLICY)
    assert found.measured is Measured.WORSE and "less work" in found.reason
    fair = verify(before, changed(after[:8], 1.0, 0.0, 0.5), FLEET_GOAL, POLICY)
    assert fair.measured is Measured.IMPROVED


def overload(blocks: list[Block], shed: float, p95_s: float) -> list[Block]:
    def fleet(block: Block) -> dict[Signal, float]:
        offered = block.fleet[Signal.ARRIVED]
        ttft = {Signal.TTFT_P50_S: p95_s / 3, Signal.TTFT_P95_S: p95_s, Signal.TTFT_P99_S: p95_s * 1.2}
        return {**values(0.2, offered, 1 - shed), Signal.SHED: shed * offered, **ttft}

    return [replace(block, fleet=fleet(block)) for block in blocks]


def test_shedding_must_raise_the_share_of_all_requests_inside_the_slo():
    before, after = series(2, replicas=1)
    goal = Goal(("slo_share",), sheds=True)
    base = overload(before, 0.0, 6.0)
    useful = verify(base, overload(after[:8], 0.2, 0.9), goal, POLICY)
    useless = verify(base, overload(after[:8], 0.8, 0.9), goal, POLICY)
    assert useful.measured is Measured.IMPROVED, useful.reason
    assert useless.measured is not Measured.IMPROVED, useless.reason


def test_a_load_never_seen_before_gives_no_verdict():
    before, after = series(3, effect=-0.5, load_shift=0.0, replicas=1)
    far = [replace(b, fleet={**b.fleet, Signal.ARRIVED: b.fleet[Signal.ARRIVED] * 5}) for b in after]
    found = verify(before, far, FLEET_GOAL, POLICY)
    assert found.measured is Measured.INCONCLUSIVE and "seen before" in found.reason


def test_without_blocks_on_both_sides_it_is_unmeasured():
    before, after = series(4, replicas=1)
    assert verify(before, [], FLEET_GOAL, POLICY).measured is Measured.UNMEASURED
    assert verify(before[:2], after, FLEET_GOAL, POLICY).measured is Measured.UNMEASURED
    load = (Signal.ARRIVED, Signal.FINISHED, Signal.PROMPT_TOKENS_MEAN)
    bare = [replace(b, fleet={s: b.fleet[s] for s in load}) for b in after]
    assert verify(before, bare, FLEET_GOAL, POLICY).measured is Measured.UNMEASURED


def test_great_harm_shows_in_one_block_and_a_ripple_does_not():
    before, after = series(5, effect=3.0, replicas=1)
    assert verify(before, after[:1], FLEET_GOAL, POLICY, early=True).measured is Measured.WORSE
    before, after = series(5, replicas=1)
    assert verify(before, after[:1], FLEET_GOAL, POLICY, early=True).measured is Measured.INCONCLUSIVE


def seen(time_s: float, window_s: float = 60.0, finished: float = 60.0) -> Snapshot:
    return Snapshot(time_s, window_s, 5, {}, {Signal.FINISHED: Fact(finished, age_s=1.0)})


def test_overlapping_snapshots_give_blocks_that_do_not_overlap():
    log = BlockLog(3600, 30)
    for time_s in range(60, 615, 15):
        assert log.observe(seen(float(time_s)), float(time_s))
    blocks = log.between(0, 1000)
    assert len(blocks) == 10
    assert all(late.start_s >= early.end_s for early, late in pairwise(blocks))
    assert log.watched_s(610) == 610
    log.cut(630)
    assert log.observe(seen(660.0), 660.0) and len(log.between(0, 1000)) == 10
    assert log.observe(seen(690.0), 690.0) and len(log.between(0, 1000)) == 11


def test_a_gap_or_a_stale_snapshot_ends_what_was_watched():
    log = BlockLog(3600, 30)
    assert log.observe(seen(60.0), 60.0) and log.observe(seen(120.0), 120.0)
    assert not log.observe(seen(180.0), 240.0)
    assert not log.observe(Snapshot(None, 60.0, 1, {}, {}), 240.0)
    assert log.watched_s(500) == 0
    assert log.observe(seen(560.0), 560.0)
    assert log.watched_s(560) == 60


def test_short_blocks_are_joined_by_finished_requests():
    parts = [
        Block(i * 20.0, (i + 1) * 20.0, {Signal.FINISHED: n, Signal.ITL_MEAN_S: itl}, {})
        for i, (n, itl) in enumerate([(10.0, 0.01), (10.0, 0.01), (20.0, 0.04), (5.0, 0.02)])
    ]
    (whole,) = joined(parts, 60.0)
    assert whole.fleet[Signal.FINISHED] == 40
    assert whole.fleet[Signal.ITL_MEAN_S] == pytest.approx(0.025)


@pytest.mark.parametrize(
    ("limit_s", "share"), [(0.5, 0.25), (1.0, 0.5), (3.0, 0.95), (2.0, 0.725), (5.0, 1.0), (0.0, 0.0)]
)
def test_share_within_a_limit(limit_s: float, share: float):
    assert share_within(limit_s, 1.0, 3.0, 4.0) == pytest.approx(share)
    assert share_within(limit_s, None, None, None) is None


@pytest.mark.parametrize(("p", "freedom", "table"), [(0.975, 3, 3.182), (0.995, 10, 3.169), (0.9995, 4, 8.610)])
def test_student_quantile_agrees_with_the_table(p: float, freedom: float, table: float):
    assert student_quantile(p, freedom) == pytest.approx(table, rel=0.02)


def test_blocks_on_two_sides_of_a_gap_are_not_joined():
    spans = [(0.0, 60.0), (60.0, 105.0), (135.0, 195.0), (195.0, 210.0)]
    parts = [Block(start, end, {Signal.FINISHED: 1.0}, {}) for start, end in spans]
    assert [(b.start_s, b.end_s) for b in joined(parts, 60.0)] == spans[:3]


def with_slow_replica(blocks: list[Block], seed: int, excess: list[float], share: float) -> list[Block]:
    """The same blocks with r0 `excess` times slower than the rest, and serving `share` of the requests."""
    rng = np.random.default_rng(seed)
    out = []
    for block, factor in zip(blocks, excess, strict=True):
        offered, level = block.fleet[Signal.ARRIVED], block.replicas["r1"][Signal.TTFT_MEAN_S]
        slow = level * factor * float(np.exp(rng.normal(0, 0.05)))
        rest = {
            f"r{i}": values(level * float(np.exp(rng.normal(0, 0.05))), offered * (1 - share) / 3) for i in (1, 2, 3)
        }
        fleet = values(share * slow + (1 - share) * level, offered)
        out.append(replace(block, fleet=fleet, replicas={"r0": values(slow, offered * share), **rest}))
    return out


SHIFT = Goal(("e2e_per_token_s", "itl_mean_s"), shifted=("r0",))


def test_a_shift_away_from_a_slow_replica_is_seen_through_a_bursty_load():
    kept = 0
    for seed in range(20):
        before, after = series(seed, burst=0.2)
        bad = with_slow_replica(before, seed, [1.0] * (BEFORE - 2) + [5.0, 12.0], 0.25)
        good = with_slow_replica(after, seed + 100, [1.0] * len(after), 0.08)
        found = verify(bad, good, SHIFT, POLICY, steady=False)
        assert found.measured is not Measured.WORSE
        kept += found.measured is Measured.IMPROVED
    assert kept >= 16


def test_a_shift_away_from_a_healthy_replica_is_hardly_ever_seen_as_a_gain():
    kept = 0
    for seed in range(20):
        before, after = series(seed, burst=0.2)
        same = with_slow_replica(before, seed, [1.0] * BEFORE, 0.25)
        moved = with_slow_replica(after, seed + 100, [1.0] * len(after), 0.08)
        kept += verify(same, moved, SHIFT, POLICY).measured is Measured.IMPROVED
    assert kept <= 3


def queued(start_s: float, waiting: float, e2e_s: float = 1.0) -> Block:
    fleet = {Signal.FINISHED: 100.0, Signal.WAITING: waiting, Signal.E2E_P95_S: e2e_s}
    return Block(start_s, start_s + 60, fleet, {})


def test_a_queue_left_over_is_worked_off_before_anything_is_judged():
    before = [queued(-60, 80)]
    falling = [queued(60, 70), queued(120, 40), queued(180, 30)]
    seen = judgeable(before, falling, 0)
    assert seen.draining and not seen.steady
    done = [*falling, queued(240, 5), queued(300, 4), queued(360, 6)]
    seen = judgeable(before, done, 0)
    assert [b.start_s for b in seen.blocks] == [300, 360] and not seen.draining
    growing = [queued(60, 90), queued(120, 120), queued(180, 150)]
    assert not judgeable(before, growing, 0).draining
    assert judgeable([queued(-60, 0)], [queued(60, 0)], 0).steady


def test_requests_that_arrived_before_the_write_do_not_count():
    after = [queued(60, 0, e2e_s=90), queued(120, 0, e2e_s=90), queued(180, 0, e2e_s=90)]
    assert [b.start_s for b in judgeable([queued(-60, 0)], after, 0).blocks] == [120, 180]
