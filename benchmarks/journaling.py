"""What the journal adds to an action, in milliseconds: the time its transactions take, on SQLite and PostgreSQL.

Run: PYTHONPATH=. python benchmarks/journaling.py [ACTIONS]
Actions on a scripted stack that answers at once, each undone at once. SQLite lies in a temporary folder (TMPDIR says
where; the disk matters, as every commit waits for it), PostgreSQL is a server of its own where its programs are
installed. The journal of each begins empty and grows. The target is a median under 20 ms.
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "harness"))

from postgres_server import DEBIAN, new_database, postgres_server
from scripted_stack import ManualClock, ScriptedStack, weight_action

from harness.execution import Executor
from harness.gate.check import check
from harness.journal.journal import Journal
from harness.journal.lease import Lease
from harness.journal.record import State
from harness.journal.store import Store, open_store
from harness.mode import Mode
from harness.policy import Policy

ACTIONS = 200
SENT, SETTLES, UNDONE = "until its write is sent", "until it settles", "undone again"
TARGET_MS = 20.0
APART_S, WATCHED_S, CYCLE_S = 2 * 86_400.0, 420.0, 60.0
"""Actions are days apart, so that no rule on their number or pace applies, and each needs a while of watching."""


@dataclass(frozen=True)
class Spent:
    """Milliseconds in transactions, by the wall's clock and by the processor's; the latter leaves out the disk."""

    wall_ms: float = 0.0
    cpu_ms: float = 0.0
    count: int = 0


@dataclass
class TimedStore:
    """A store that adds up how long its transactions take, whatever is done in them included."""

    store: Store
    spent: Spent = Spent()

    @contextmanager
    def begin(self) -> Iterator[Connection]:
        """See Store.begin."""
        wall_s, cpu_s = time.perf_counter(), time.thread_time()
        with self.store.begin() as connection:
            yield connection
        wall_ms, cpu_ms = (time.perf_counter() - wall_s) * 1e3, (time.thread_time() - cpu_s) * 1e3
        now = self.spent
        self.spent = Spent(now.wall_ms + wall_ms, now.cpu_ms + cpu_ms, now.count + 1)


def measured(opened: Store, actions: int) -> dict[str, list[Spent]]:
    """Make a change and take it back, again and again: by part of an action, what was spent up to its end."""
    store, clock, policy = TimedStore(opened), ManualClock(), Policy.load()
    spent: dict[str, list[Spent]] = {SENT: [], SETTLES: [], UNDONE: []}
    stack = ScriptedStack(clock)
    journal = Journal(store, lease=Lease.take(opened, "stack"))  # type: ignore[arg-type]
    executor = Executor(stack, journal, policy, clock, stack, simulated=True)
    for _ in range(actions):
        clock.sleep(APART_S)
        for _ in range(int(WATCHED_S / CYCLE_S)):
            clock.sleep(CYCLE_S)
            executor.supervise(stack.snapshot(CYCLE_S))
        store.spent = Spent()
        stack.before_write = lambda: spent[SENT].append(store.spent)
        action, seen = weight_action(), stack.snapshot(CYCLE_S)
        now_s = clock.now_s()
        verdict = check(action, seen, executor.history(), policy, mode=Mode.AUTO, now_s=now_s, simulated=True)
        record = journal.propose(action, verdict, mode=Mode.AUTO, now_s=now_s)
        record = executor.apply(record.id, mode=Mode.AUTO, snapshot=seen)
        assert record.state is State.SETTLING, record
        spent[SETTLES].append(store.spent)
        stack.before_write = lambda: None
        executor.undo_open("measured")
        spent[UNDONE].append(store.spent)
    return spent


def tell(name: str, spent: Mapping[str, Sequence[Spent]]) -> float:
    """Print a line per part and return the median of what an action waits for, in milliseconds."""
    for part, times in spent.items():
        wall_ms, cpu_ms = sorted(one.wall_ms for one in times), sorted(one.cpu_ms for one in times)
        figures = [statistics.median(wall_ms), p99(wall_ms), statistics.median(cpu_ms), p99(cpu_ms)]
        print(f"{name:12}{part:25}{times[-1].count:12}" + "".join(f"{figure:11.1f}" for figure in figures))
    return statistics.median(one.wall_ms for one in spent[SETTLES])


def p99(ordered: Sequence[float]) -> float:
    """The smallest value that 99 of 100 do not exceed."""
    return ordered[int(0.99 * len(ordered))]


def main() -> None:
    """Measure both and print."""
    actions = int(sys.argv[1]) if len(sys.argv) > 1 else ACTIONS
    print(f"{actions} actions, one after the other" + " " * 20 + "    wall, ms" + " " * 13 + "CPU, ms")
    print("store       of an action             transactions     median        P99     median        P99")
    with tempfile.TemporaryDirectory() as name, closing(open_store(Path(name) / "journal.db")) as store:
        most_ms = tell("SQLite", measured(store, actions))
    if DEBIAN.is_dir():
        with postgres_server() as folder, closing(open_store(new_database(folder, "journal"))) as store:
            most_ms = max(most_ms, tell("PostgreSQL", measured(store, actions)))
    else:
        print("PostgreSQL is not installed here")
    print(f"at most {most_ms:.1f} ms at the median until it settles; the target is under {TARGET_MS:g} ms")


if __name__ == "__main__":
    main()
