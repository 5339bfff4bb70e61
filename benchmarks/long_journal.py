"""What an action and a look cost when the journal is long: with few ended actions in it, and with thousands, on SQLite.

Run: PYTHONPATH=. python benchmarks/long_journal.py [ACTIONS]
Actions are made and undone on a scripted stack. The journal is then filled with copies of the first, 20 a day, and with
as many copies of a denied proposal and of a scored decision; their lines are not chained, which nothing here looks at.
Processor time, for which other programs and the disk count little.
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from sqlalchemy import Connection, Table, insert, select, update

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "harness"))

from scripted_stack import ManualClock, ScriptedStack, cap_action, weight_action

from harness.action import Action
from harness.execution import Executor
from harness.gate.check import check
from harness.journal.journal import Journal
from harness.journal.lease import Lease
from harness.journal.record import Record, State
from harness.journal.schema import ACTION, EVENT, HEAD, SHADOW_SCORE
from harness.journal.store import Store, open_store
from harness.mode import Mode
from harness.policy import Policy
from harness.shadow.earned import Earned
from harness.shadow.record import ShadowRecord
from harness.shadow.score import Hindsight, Played, Score

ACTIONS, TIMES = 5000, 20
APART_S, REST_S, WATCHED_S, CYCLE_S = 86_400.0 / 20, 2 * 86_400.0, 420.0, 60.0
SETTLES, HISTORY, LOOK, EARNED = "action until it settles", "the gate's history", "look at a change", "what is earned"
CHUNK = 500
Spent = dict[str, list[float]]


class Session:
    """What looks after a scripted stack."""

    def __init__(self, store: Store) -> None:
        self.clock, self.policy = ManualClock(), Policy.load()
        self.stack = ScriptedStack(self.clock)
        self.journal = Journal(store, lease=Lease.take(store, "stack"))
        self.executor = Executor(self.stack, self.journal, self.policy, self.clock, self.stack, simulated=True)
        self.scores = ShadowRecord(store, stack="stack", planner="search")
        self.earned = Earned(self.scores, self.journal, self.policy)

    def watch(self, seconds: float) -> None:
        """Cycles as they come."""
        for _ in range(int(seconds / CYCLE_S)):
            self.clock.sleep(CYCLE_S)
            self.executor.supervise(self.stack.snapshot(CYCLE_S))

    def propose(self, action: Action) -> Record:
        """With the gate's verdict."""
        seen, now_s = self.stack.snapshot(CYCLE_S), self.clock.now_s()
        verdict = check(action, seen, self.executor.history(), self.policy, mode=Mode.AUTO, now_s=now_s, simulated=True)
        return self.journal.propose(action, verdict, mode=Mode.AUTO, now_s=now_s)

    def change(self) -> None:
        """From the proposal until it settles."""
        record = self.executor.apply(self.propose(weight_action()).id, mode=Mode.AUTO)
        assert record.state is State.SETTLING, record


def begin(session: Session) -> None:
    """One of each row that a journal is filled with."""
    session.watch(WATCHED_S)
    session.change()
    session.watch(WATCHED_S)
    session.executor.undo_open("to be copied")
    assert session.propose(cap_action(after=999.0)).state is State.DENIED
    played = Played(0.9, 5.0, 1.0)
    change = {"setting": "routing_weight", "target": "r0", "before": 100.0, "after": 60.0, "action_id": None}
    hindsight = Hindsight(played, played, played, None, 3)
    session.scores.add(Score(**change, decided_s=session.clock.now_s(), planner="search", hindsight=hindsight))


def fill(store: Store, copies: int) -> float:
    """Copies of every row and line there is; the time that they tell of, in seconds."""
    with store.begin() as connection:
        tables = (ACTION, EVENT, SHADOW_SCORE)
        actions, events, scores = ([dict(row) for row in connection.execute(select(t)).mappings()] for t in tables)
        for place in range(1, copies + 1):
            ids = {action["id"]: action["id"] + place * len(actions) for action in actions}
            for action in actions:
                later(connection, ACTION, action, place, id=ids[action["id"]])
            for event in events:
                seq = event["seq"] + place * len(events)
                later(connection, EVENT, event, place, seq=seq, action_id=ids.get(event["action_id"]))
            for score in scores:
                later(connection, SHADOW_SCORE, score, place, seq=None, key=f"{score['key']} {place}")
        connection.execute(update(HEAD).values(seq=len(events) * (copies + 1)))
    return copies * APART_S


def later(connection: Connection, table: Table, row: Mapping[str, object], place: int, **other: object) -> None:
    """A copy of a row, of so many times later."""
    moved = {name: value + place * APART_S for name, value in row.items() if name.endswith("_s") and value is not None}
    connection.execute(insert(table).values(**{**row, **moved, **other}))


def measured(session: Session) -> Spent:
    """Milliseconds of processor time of each part of one change after another."""
    spent: Spent = {part: [] for part in (SETTLES, HISTORY, LOOK, EARNED)}
    for _ in range(TIMES):
        session.clock.sleep(REST_S)
        session.watch(WATCHED_S)
        timed(spent, SETTLES, session.change)
        session.watch(2 * CYCLE_S)
        timed(spent, HISTORY, session.executor.history)
        timed(spent, LOOK, lambda: session.watch(CYCLE_S))
        timed(spent, EARNED, session.earned)
        session.executor.undo_open("measured")
    return spent


def timed(spent: Spent, part: str, do: Callable[[], object]) -> None:
    """Do it and note how long it took."""
    begun_s = time.thread_time()
    do()
    spent[part].append((time.thread_time() - begun_s) * 1e3)


def tell(spent: Sequence[Spent]) -> None:
    """Print a line for each part: median with few and with many, and what the first one with many took."""
    for part in spent[0]:
        few, many = (statistics.median(one[part]) for one in spent)
        print(f"{part:26}{few:12.1f}{many:12.1f}{spent[1][part][0]:18.1f}")


def main() -> None:
    """Measure both and print."""
    copies = int(sys.argv[1]) if len(sys.argv) > 1 else ACTIONS
    with tempfile.TemporaryDirectory() as name, closing(open_store(Path(name) / "journal.db")) as store:
        session = Session(store)
        begin(session)
        few = measured(session)
        session.clock.sleep(fill(store, copies))
        many = measured(session)
    print(f"CPU time, ms{'':20}{'few':>6}{copies:>12}{'the first of them':>18}")
    tell((few, many))


if __name__ == "__main__":
    main()
