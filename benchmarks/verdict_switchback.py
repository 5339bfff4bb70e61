"""Switchback against before and after, for a change of the whole pool: wrong verdicts, and what users pay meanwhile.

Run: PYTHONPATH=. python benchmarks/verdict_switchback.py [RUNS]

Switchback: pairs of periods with the old and the new value in random order, the first seconds of each left out, the
pairs' differences judged by Student's t. Before and after: the shipped verdict. Same fleets, same traffic.
"""

import sys
from collections import Counter
from math import log1p, sqrt

import numpy as np
from verdict_windows import FLEETS, KINDS, LONGEST_S, POLICIES, SETTING, WATCHED_S, Bench, Kind, bench, change

from harness.outcome import Measured
from harness.verification.block import Block, block_of
from harness.verification.goal import goal_of
from harness.verification.metric import METRICS
from harness.verification.statistics import student_quantile
from harness.verification.verify import LATENCY_GUARDS
from stack.simulator.engine import layout

RUNS = 20
PAIRS = (3, 5)
PERIOD_S, DROPPED_S = 180.0, 30.0
THROTTLING = 1.5
TRIAL_S = 1800.0
"""Over which users are counted: as long as five pairs take."""


def period(one: Bench, value: float, slowed: bool) -> Block:
    """One period with `value`; where the change is one that slows, the hardware is slow while the new value holds."""
    for name in one.stack.simulation.fleet.replica_names:
        one.stack.control.write(SETTING, name, value)
    # No setting slows by a known factor.
    scale = one.stack.simulation._world.real[:, layout.HARDWARE_SCALE]
    scale *= THROTTLING if slowed else 1.0
    one.stack.advance(PERIOD_S)
    scale /= THROTTLING if slowed else 1.0
    block = block_of(one.stack.reader.snapshot(PERIOD_S - DROPPED_S))
    if block is None:
        raise SystemExit("a period could not be measured")
    return block


def switchback(kind: Kind, seed: int, pairs: int) -> tuple[Measured, float]:
    """The verdict, and the share of requests inside the SLO over the trial."""
    one = bench(POLICIES["shipped"], FLEETS["pool of two"], Kind(kind.value, kind.fault), seed)
    one.watch(WATCHED_S)
    held = float(next(iter(one.stack.reader.snapshot(60.0).settings[SETTING].values())))
    rng, found = np.random.default_rng(seed), []
    for _ in range(pairs):
        blocks = {}
        for new in rng.permutation([False, True]):
            blocks[bool(new)] = period(one, kind.value(held) if new else held, kind.slows and bool(new))
        found.append((blocks[False], blocks[True]))
    for name in one.stack.simulation.fleet.replica_names:
        one.stack.control.write(SETTING, name, held)
    one.stack.advance(max(0.0, WATCHED_S + TRIAL_S - one.stack.simulation.now_s))
    goal = goal_of(change("fleet", held, kind.value(held)))
    return verdict(found, goal.metrics, one), share(one)


def verdict(pairs: list[tuple[Block, Block]], goals: tuple[str, ...], one: Bench) -> Measured:
    """By the rules of the shipped verdict: a goal improved, nothing harmed."""
    plan, slo = one.policy.verification, one.policy.slo
    gained = harmed = False
    for name in dict.fromkeys((*goals, *LATENCY_GUARDS)):
        metric = METRICS[name]
        values = [(metric.of(old.fleet, slo), metric.of(new.fleet, slo)) for old, new in pairs]
        known = [(a, b) for a, b in values if a is not None and b is not None]
        if len(known) < len(pairs):
            continue
        sign = 1 if metric.lower_is_better else -1
        moves = np.array([sign * (metric.scaled(b) - metric.scaled(a)) for a, b in known])
        width = student_quantile(1 - plan.alpha_ratio, len(moves) - 1) * moves.std(ddof=1) / sqrt(len(moves))
        margin = log1p(plan.harm_margin_ratio) if metric.scale.relative else plan.goodput_margin_ratio
        gained |= name in goals and bool(moves.mean() + width < 0)
        harmed |= bool(moves.mean() - width > 0 and moves.mean() >= margin)
    return Measured.WORSE if harmed else Measured.IMPROVED if gained else Measured.INCONCLUSIVE


def before_and_after(kind: Kind, seed: int) -> tuple[Measured, float]:
    """The shipped verdict, and the share of requests inside the SLO over the trial."""
    one = bench(POLICIES["shipped"], FLEETS["pool of two"], kind, seed)
    one.watch(WATCHED_S)
    held = float(next(iter(one.stack.reader.snapshot(60.0).settings[SETTING].values())))
    one.apply(change("fleet", held, kind.value(held)))
    (record,) = one.watch(WATCHED_S + LONGEST_S)
    one.stack.advance(max(0.0, WATCHED_S + TRIAL_S - one.stack.simulation.now_s))
    measured = Measured.UNMEASURED if record.verification is None else record.verification.measured
    return measured, share(one)


def share(one: Bench) -> float:
    """Requests inside the SLO, of those that arrived in the trial."""
    return one.stack.simulation.slo_share(one.policy.slo, WATCHED_S, WATCHED_S + TRIAL_S)


def main() -> None:
    """Print a table."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else RUNS
    ways = {"before and after": before_and_after}
    ways |= {f"{n} pairs": lambda kind, seed, n=n: switchback(kind, seed, n) for n in PAIRS}
    print(
        "| the change | judged by | improved | worse | neither | requests inside the SLO |\n|---|---|---|---|---|---|"
    )
    for name, kind in KINDS.items():
        for way, judge in ways.items():
            results = [judge(kind, seed) for seed in range(runs)]
            found = Counter(measured for measured, _ in results)
            inside = float(np.mean([part for _, part in results]))
            neither = runs - found[Measured.IMPROVED] - found[Measured.WORSE]
            print(
                f"| {name} | {way} | {found[Measured.IMPROVED]} | {found[Measured.WORSE]} | {neither} | {inside:.3f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
