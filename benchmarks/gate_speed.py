"""How long one check of the gate takes: a full history of a day, a fleet of four and of thirty-two replicas.

.venv/bin/python benchmarks/gate_speed.py
"""

import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "harness"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "harness" / "gate"))

from gate_situation import NOW, WATCHED, past, raising, ruled, snapshot

from harness.gate.history import History
from stack.snapshot import Snapshot

CHECKS = 5000
LIMIT_MS = 1.0
REPLICAS = (4, 32)
PAST = 20
"""Most changes in a day."""
CLOCKS = {"wall": time.perf_counter, "CPU": time.thread_time}
"""On a machine that does other things too, the wall clock's P99 is mostly theirs."""


def fleet_of(replicas: int) -> Snapshot:
    """The four replicas' facts and settings under more names."""
    seen = snapshot()
    facts = {f"r{n}": seen.replicas[f"r{n % 4}"] for n in range(replicas)}
    settings = {name: dict.fromkeys(facts, next(iter(held.values()))) for name, held in seen.settings.items()}
    return replace(seen, replicas=facts, settings=settings)


def spent_ms(seen: Snapshot, history: History, clock: Callable[[], float]) -> list[float]:
    """Milliseconds of each check, sorted."""
    action, spent = raising(), []
    for _ in range(CHECKS):
        start_s = clock()
        ruled(action, seen, history)
        spent.append((clock() - start_s) * 1e3)
    return sorted(spent)


def main() -> int:
    """Measure and print; 1 when the median is above the limit."""
    history = replace(
        WATCHED, past=tuple(past(written_s=NOW - 4000 * n, touched_s=NOW - 4000 * n) for n in range(1, PAST))
    )
    slowest_ms = 0.0
    print(f"{'replicas':>8}  {'clock':5}  {'median ms':>9}  {'P99 ms':>7}   ({CHECKS} checks each)")
    for replicas in REPLICAS:
        for name, clock in CLOCKS.items():
            spent = spent_ms(fleet_of(replicas), history, clock)
            median_ms, p99_ms = statistics.median(spent), spent[int(0.99 * len(spent))]
            slowest_ms = max(slowest_ms, median_ms)
            print(f"{replicas:8}  {name:5}  {median_ms:9.3f}  {p99_ms:7.3f}")
    print(f"limit {LIMIT_MS:g} ms: {'kept' if slowest_ms < LIMIT_MS else 'missed'} in the median")
    return int(slowest_ms >= LIMIT_MS)


if __name__ == "__main__":
    sys.exit(main())
