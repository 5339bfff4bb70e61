"""A stack, a journal in a file, and sessions that look after it until they die; and what must be true afterwards."""

import copy
import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path

from crash_points import FaultyStack, FaultyStore, Points
from scripted_stack import Crash, ManualClock, weight_action

from harness.errors import StoreError
from harness.execution import Executor
from harness.gate.check import check
from harness.journal.audit import audit
from harness.journal.journal import Journal
from harness.journal.lease import LEASE_S, Lease
from harness.journal.record import OPEN, Record, State
from harness.journal.store import Store, open_store
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
        seen: what the journal's file said at each write: value, state of the action, its permit.
    """

    path: Path
    policy: Policy
    helps: float
    blocks: BlockLog | None = None
    clock: ManualClock = field(default_factory=ManualClock)
    points: Points = field(default_factory=Points)
    seen: list[tuple[float, str, list[dict[str, Value]]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.stack = FaultyStack(self.clock, self.points)
        self.stack.on_write = self._look
        self.stack.itl_s = lambda values, time_s, replica: (
            0.02 * (self.helps if values["routing_weight", "r0"] < PRE else 1.0)
        )

    def copy_to(self, path: Path) -> "World":
        """The same world in another place."""
        shutil.copy(self.path, path)
        twin = World(path, self.policy, self.helps, copy.deepcopy(self.blocks), ManualClock(self.clock.time_s))
        twin.stack.values, twin.stack.noise = dict(self.stack.values), self.stack.noise
        twin.stack.writes, twin.seen = list(self.stack.writes), list(self.seen)
        return twin

    def break_at(self, points: Points) -> None:
        """Points from here on."""
        self.points = self.stack.points = points

    def _look(self, setting: str, target: str, value: Value) -> None:
        with closing(sqlite3.connect(self.path)) as other:
            for state, permit in other.execute("SELECT state, permit FROM action ORDER BY id DESC LIMIT 1"):
                self.seen.append((float(value), state, json.loads(permit or "{}").get("steps", [])))


@dataclass
class Session:
    """One process that looks after the world."""

    world: World
    store: Store
    journal: Journal
    executor: Executor

    @classmethod
    def begin(cls, world: World) -> "Session":
        opened = open_store(world.path)
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

    def change(self) -> None:
        """Propose the change and carry it out."""
        if self.world.blocks is not None:
            self.executor.blocks.__dict__.update(copy.deepcopy(self.world.blocks).__dict__)
        now_s, snapshot = self.world.clock.now_s(), self._look()
        if snapshot is None:
            return
        action = weight_action(PRE, WANTED)
        verdict = check(
            action, snapshot, self.executor.history(), self.world.policy, mode=Mode.AUTO, now_s=now_s, simulated=True
        )
        record = self.journal.propose(action, verdict, mode=Mode.AUTO, now_s=now_s)
        if record.state is State.APPROVED:
            self.executor.apply(record.id, mode=Mode.AUTO, snapshot=snapshot)

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
    except (Crash, StoreError, UnreachableError):
        return False
    else:
        return True
    finally:
        if session is not None:
            session.store.close()


def heal(world: World) -> list[Record]:
    """Restart without further faults, and what was proposed in all."""
    world.break_at(Points())
    found: list[Record] = []

    def look(session: Session) -> None:
        problems = broken_promises(world, session.store, session.journal)
        assert not problems, problems
        found.extend(session.journal.records())

    assert live(world, Session.finish, look)
    return found


def broken_promises(world: World, store: Store, journal: Journal) -> list[str]:
    """What is not as it must be once a session has come to its end."""
    written = [value for _, _, value in world.stack.writes]
    found = [f"wrote {value}, neither former nor wanted" for value in written if value not in (PRE, WANTED)]
    if written.count(WANTED) > 1:
        found.append(f"the change was made more than once: {written}")
    found += [f"wrote {value} on a permit {steps}" for value, _, steps in world.seen if steps != STEPS]
    found += [f"wrote {value} while {state}" for value, state, _ in world.seen if State(state) not in _may_write(value)]
    if len(world.seen) != len(written):
        found.append(f"{len(written)} writes, of which {len(world.seen)} had a row")
    for record in journal.records():
        found += _bad_ending(record, world.stack.values["routing_weight", "r0"], journal.frozen())
    audited = audit(store)
    return [*found, *([] if audited.broken is None else [audited.broken])]


def _bad_ending(record: Record, holds: Value, frozen: str | None) -> list[str]:
    if record.outcome is None:
        return [f"action {record.id} was left {record.state}, which is no ending"]
    if record.state is State.NEEDS_PERSON:
        return [] if frozen is not None else ["a person is needed, but changes are not frozen"]
    expected = WANTED if record.state is State.KEPT else PRE
    return [] if holds == expected else [f"{record.state}, but the stack holds {holds}"]


STEPS = [{"target": "r0", "pre": PRE, "wanted": WANTED}]


def _may_write(value: float) -> frozenset[State]:
    """States in which a value may be written: the change once its permit is committed, the undo while it is open."""
    return frozenset({State.ARMED}) if value == WANTED else OPEN


def prepared(path: Path, policy: Policy, helps: float) -> World:
    """A world that was watched for a quarter of an hour, so that a change can be judged."""
    world = World(path, policy, helps)
    open_store(path).close()
    session = Session.begin(world)
    for _ in range(int(WATCHED_S / WATCH_CYCLE_S)):
        world.clock.sleep(WATCH_CYCLE_S)
        session.executor.supervise(world.stack.snapshot(60.0))
    world.blocks = copy.deepcopy(session.executor.blocks)
    session.store.close()
    return world
