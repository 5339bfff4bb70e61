"""How right forecasts are on stacks whose step times, faults and future they do not know.

For each seed a hidden stack runs eight minutes; the forecaster sees snapshots only and predicts a random change. The
truth is the hidden stack forked at that moment, with and without the change, on its own arrivals to come. Beside the
forecast stands what perfect knowledge of the stack would give: the mean effect in four other futures of the very same
hidden stack (same past, later requests in another order).

Run: PYTHONPATH=. python benchmarks/forecast_accuracy.py --seeds 10000 10200 [--traces FOLDER] [--json FILE]
"""

import argparse
import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from forecast_cases import DECISION_S, Case, case_of
from forecast_changes import random_action, written

from harness.action import Action, Forecast
from harness.forecast.figures import Figures, figures_of
from harness.forecast.forecaster import Forecaster
from harness.forecast.rehearsal import DRAIN_S
from stack.simulator.stack import SimulatedStack
from stack.snapshot import Signal, Snapshot

METRICS = ("ttft_p99_s", "e2e_p99_s", "slo_share", "e2e_p50_s", "itl_mean_s", "finished_per_s")
JUDGED = METRICS[:3]
EFFECT_MIN = 0.02
"""Smaller true effects have no sign to be right about."""
CYCLE_S, WINDOW_S = 15.0, 60.0
FUTURES = 4


@dataclass(frozen=True)
class Row:
    """One figure of one case."""

    seed: int
    metric: str
    setting: str
    fault: str
    words: str
    trusted: bool
    conclusive: bool
    predicted: tuple[float, float]
    low: float
    high: float
    true: tuple[float, float]
    known: tuple[float, ...]
    """Effects in the other futures of the hidden stack."""

    @property
    def effect(self) -> float:
        """The true one."""
        return effect(self.metric, *self.true)

    @property
    def right(self) -> bool:
        """Whether the predicted sign is the true one."""
        return bool(np.sign(effect(self.metric, *self.predicted)) == np.sign(self.effect))

    @property
    def knowable(self) -> bool:
        """Whether perfect knowledge of the stack gives the right sign."""
        return bool(np.sign(np.mean(self.known)) == np.sign(self.effect))

    @property
    def covered(self) -> bool:
        """Whether the interval holds what came."""
        return self.low - 1e-9 <= self.true[1] <= self.high + 1e-9

    @property
    def trivial(self) -> bool:
        """Whether nothing could be missed: all requests good, and predicted so."""
        return self.metric == "slo_share" and min(self.true[1], self.predicted[1]) > 0.9999


def effect(metric: str, before: float, after: float) -> float:
    """A difference of shares, otherwise a relative change."""
    return after - before if metric.endswith("_share") else after / max(before, 1e-9) - 1


def rows_of(seed: int, traces: Path | None) -> list[Row]:
    """The rows of one case; empty when there was no forecast."""
    case = case_of(seed, traces)
    snapshots = watched(case)
    forecaster = Forecaster(case.slo)
    for snapshot in snapshots:
        forecaster.observe(snapshot)
    running = (snapshots[-1].value(Signal.RUNNING) or 0.0) / case.simulation.fleet.replicas
    action = random_action(case.simulation, case.simulation.settings(), running, case.rng)
    forecast = forecaster.forecast(action, snapshots[-1])
    if not forecast.effects:
        print(f"{seed}: {forecast.note}")
        return []
    truth = played(case, action, forecast.horizon_s)
    others = []
    for future in range(1, FUTURES + 1):
        other = case_of(seed, traces, future)
        other.simulation.advance(DECISION_S)
        others.append(played(other, action, forecast.horizon_s))
    return [
        _row(case, action, forecast, metric, truth, others)
        for metric in METRICS
        if metric in truth[0] and metric in truth[1] and metric in forecast.effects
    ]


def watched(case: Case) -> list[Snapshot]:
    """What an agent sees until the decision: the last minute, every cycle."""
    stack, seen = SimulatedStack(case.simulation), []
    while case.simulation.now_s < DECISION_S - 1e-6:
        stack.advance(CYCLE_S)
        seen.append(stack.reader.snapshot(WINDOW_S))
    return seen


def played(case: Case, action: Action, horizon_s: float) -> tuple[Figures, Figures]:
    """Figures of the hidden stack over the horizon, without and with the change."""
    end_s = DECISION_S + horizon_s
    found = []
    for simulation in (case.simulation.fork(), written(case.simulation, action)):
        simulation.advance(end_s + DRAIN_S)
        found.append(figures_of(simulation.outcomes(), case.slo, DECISION_S, end_s, end_s + DRAIN_S))
    return found[0], found[1]


def _row(
    case: Case,
    action: Action,
    forecast: Forecast,
    metric: str,
    truth: tuple[Figures, Figures],
    others: Sequence[tuple[Figures, Figures]],
) -> Row:
    predicted = forecast.effects[metric]
    return Row(
        seed=case.seed,
        metric=metric,
        setting=action.setting,
        fault=case.fault,
        words=f"{case.words}; {action.setting} on {action.target} {action.before} -> {action.after}",
        trusted=forecast.trust == "trusted",
        conclusive=predicted.conclusive,
        predicted=(predicted.before, predicted.after),
        low=predicted.low,
        high=predicted.high,
        true=(truth[0][metric], truth[1][metric]),
        known=tuple(effect(metric, b[metric], a[metric]) for b, a in others if metric in a and metric in b),
    )


def report(rows: Sequence[Row]) -> None:
    """Figures by metric, by setting and by fault."""
    print("\nsign, where the true effect exceeds 2 %; interval, over all cases")
    for metric in METRICS:
        told = [row for row in rows if row.metric == metric]
        moved = [row for row in told if abs(row.effect) > EFFECT_MIN]
        sure = [row for row in moved if row.conclusive]
        errors = [
            abs(effect("ratio_share" if metric == "slo_share" else metric, row.true[1], row.predicted[1]))
            for row in told
        ]
        parts = (
            f"{metric:15s} sign {_share(r.right for r in moved)}",
            f"perfect knowledge {_share(r.knowable for r in moved)}",
            f"where it is right {_share(r.right for r in moved if r.knowable)}",
            f"called conclusive {_share(r.right for r in sure)}",
            f"in the interval {_share(r.covered for r in told if not r.trivial)}",
            f"median error {np.median(errors):.3f}",
        )
        print(" | ".join(parts))
    for name in ("setting", "fault"):
        print(f"\nby {name}: sign right, in the interval")
        for metric in JUDGED:
            _by(name, [row for row in rows if row.metric == metric])
    doubted = [row for row in rows if not row.trusted and row.metric in JUDGED]
    print(f"\ndoubted: {len(doubted)} of {sum(row.metric in JUDGED for row in rows)} rows")
    print("\nwrong signs")
    for row in rows:
        if row.metric in JUDGED and abs(row.effect) > EFFECT_MIN and not row.right:
            print(_wrong(row))


def _wrong(row: Row) -> str:
    seen = f"{row.true[0]:.3f} -> {row.true[1]:.3f}, predicted {row.predicted[0]:.3f} -> {row.predicted[1]:.3f}"
    noise = "" if row.knowable else " (nor by perfect knowledge)"
    return f"{row.seed} {row.metric} {seen}{noise} {row.fault}; {row.words}"


def _by(name: str, rows: Sequence[Row]) -> None:
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        groups[getattr(row, name)].append(row)
    parts = []
    for key, held in sorted(groups.items()):
        moved = [row for row in held if abs(row.effect) > EFFECT_MIN]
        inside = [row for row in held if not row.trivial]
        parts.append(f"{key} {_count(r.right for r in moved)}, {_count(r.covered for r in inside)}")
    print(f"{rows[0].metric}: " + "; ".join(parts))


def _share(values: Sequence[bool]) -> str:
    held = list(values)
    return f"{np.mean(held):.3f} of {len(held)}" if held else "none"


def _count(values: Sequence[bool]) -> str:
    held = list(values)
    return f"{sum(held)}/{len(held)}"


def main() -> None:
    """Run the cases and print the report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs=2, default=(10_000, 10_200), metavar=("FIRST", "END"))
    parser.add_argument("--traces", type=Path, help="folder with azure2023_code.csv and azure2023_conv.csv")
    parser.add_argument("--json", type=Path, help="where to write every row")
    arguments = parser.parse_args()
    rows = [row for seed in range(*arguments.seeds) for row in rows_of(seed, arguments.traces)]
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(row) for row in rows], default=float))
    report(rows)


if __name__ == "__main__":
    main()
