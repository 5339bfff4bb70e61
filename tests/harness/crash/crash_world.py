"""A stack, a journal in a file, and sessions that look after it until they die."""

import copy
import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field
from pathlib import Path

from crash_points import FaultyStack, FaultyStore, Points
from scripted_stack import Crash, ManualClock, weight_action

from harness.errors import LeaseLostError, StoreError
from harness.execution import Executor
from harness.gate.check import check
from harness.journal.journal import Journal
from harness.journal.lease import LEASE_S, Lease
from harness.journal.record import State
from harness.journal.store import BUSY_TIMEOUT_S, Store, open_store
from harness.mode import Mode
from harness.policy import Policy
from harness.verification.block import BlockLog
from stack.errors import UnreachableError
from stack.setting import Value
from stack.snapshot import Snapshot

CYCLE_S = 60.0
LONGEST_CYCLES = 40
PRE, WANTED = 100.0, 60.0
WATCHED_S, WATCH_CYCLE_S = 900.0, 20.0


class Impatient(ManualClock):
    """A dead holder of the lease was this same process, which lives: it has to be waited for, at no cost."""

    def sleep(self, seconds: float) -> None:
        super().sleep(LEASE_S)


@dataclass
class World:
    """What outlives a session: the stack, the clock and the file.

    Attributes:
        helps: factor on the token time while the change is in force: below one it is kept, above one undone.
        seen: what the journal's file said at each write, or last said before: value, state of the action, its permit.
        others: the value that somebody else has set; it must stay.
        repairs: how a fault of the world is made good.
        busy_timeout_s: how long a session waits for a store that somebody else holds.
    """

    path: Path
    policy: Policy
    helps: float
    blocks: BlockLog | None = None
    clock: ManualClock = field(default_factory=ManualClock)
    points: Points = field(default_factory=Points)
    seen: list[tuple[float, str, list[dict[str, Value]]]] = field(default_factory=list)
    others: float | None = None
    repairs: ExitStack = field(default_factory=ExitStack)
    busy_timeout_s: float = BUSY_TIMEOUT_S

    def __post_init__(self) -> None:
        self.stack = FaultyStack(self.clock, self.points)
        self.stack.on_write = self._look
        self.stack.itl_s = lambda values, time_s, replica: (
            0.02 * (self.helps if values["routing_weight", "r0"] < PRE else 1.0)
        )

    def copy_to(self, path: Path) -> "World":
        """The same world in another place."""
        shutil.copy(self.path, path)
        twin = type(self)(path, self.policy, self.helps, copy.deepcopy(self.blocks), ManualClock(self.clock.time_s))
        twin.stack.values, twin.stack.noise = dict(self.stack.values), self.stack.noise
        twin.stack.writes, twin.seen = list(self.stack.writes), list(self.seen)
        return twin

    def break_at(self, points: Points) -> None:
        """Points from here on."""
        self.points = self.stack.points = points

    @property
    def holds(self) -> Value:
        """What the stack holds where the change is made."""
        return self.stack.values["routing_weight", "r0"]

    def state(self) -> tuple[str | None, str | None]:
        """State and permit of the last action, as anybody can read them in the file."""
        newest = "SELECT state, permit FROM action ORDER BY id DESC LIMIT 1"
        with closing(sqlite3.connect(f"file:{self.path}?mode=ro", uri=True, timeout=0)) as other:
            return other.execute(newest).fetchone() or (None, None)

    def _look(self, setting: str, target: str, value: Value) -> None:
        state, steps = self.seen[-1][1:] if self.seen else ("unseen", [])
        with suppress(sqlite3.Error):  # what cannot be read has not been written either
            state, permit = self.state()
            steps = json.loads(permit or "{}").get("steps", [])
        self.seen.append((float(value), state, steps))


@dataclass
class Session:
    """One process that looks after the world."""

    world: World
    store: Store
    journal: Journal
    executor: Executor

    @classmethod
    def begin(cls, world: World) -> "Session":
        opened = open_store(world.path, busy_timeout_s=world.busy_timeout_s)
        try:
            store: Store = FaultyStore(opened, world.points)  # type: ignore[assignment]
            lease = Lease.take(store, "stack", clock=Impatient())
            journal = Journal(store, wall=world.clock, lease=lease)
            executor = Executor(world.stack, journal, world.policy, world.clock, world.stack, simulated=True)
            session = cls(world, opened, journal, executor)
            executor.recover()
        except BaseException:
            opened.close()
            raise
        return session

    def change(self, *, fresh: bool = False) -> None:
        """Propose the change and carry it out, on the facts of the proposal or on fresh ones."""
        if self.world.blocks is not None:
            self.executor.blocks.__dict__.update(copy.deepcopy(self.world.blocks).__dict__)
        snapshot = self._look()
        if snapshot is None:
            return
        now_s = self.world.clock.now_s()
        action = weight_action(PRE, WANTED)
        verdict = check(
            action, snapshot, self.executor.history(), self.world.policy, mode=Mode.AUTO, now_s=now_s, simulated=True
        )
        record = self.journal.propose(action, verdict, mode=Mode.AUTO, now_s=now_s)
        if record.state is State.APPROVED:
            self.executor.apply(record.id, mode=Mode.AUTO, snapshot=None if fresh else snapshot)

    def finish(self) -> None:
        """Cycles until nothing is open."""
        for _ in range(LONGEST_CYCLES):
            if not self.journal.open_records():
                return
            self.world.clock.sleep(CYCLE_S)
            self.executor.supervise(self._look())

    def _look(self) -> Snapshot | None:
        with suppress(UnreachableError):
            return self.world.stack.snapshot(60.0)
        return None


def live(world: World, *tasks: Callable[[Session], None]) -> bool:
    """A session from its start to its end; whether it came to its own end rather than died."""
    session = None
    try:
        session = Session.begin(world)
        for task in tasks:
            task(session)
    except (Crash, StoreError, LeaseLostError, UnreachableError):
        return False
    else:
        return True
    finally:
        if session is not None:
            session.store.close()


def prepared(path: Path, policy: Policy, helps: float, kind: type[World] = World) -> World:
    """A world that was watched for a quarter of an hour, so that a change can be judged."""
    world = kind(path, policy, helps)
    open_store(path).close()
    session = Session.begin(world)
    for _ in range(int(WATCHED_S / WATCH_CYCLE_S)):
        world.clock.sleep(WATCH_CYCLE_S)
        session.executor.supervise(world.stack.snapshot(60.0))
    world.blocks = copy.deepcopy(session.executor.blocks)
    session.store.close()
    return world
