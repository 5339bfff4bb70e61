import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pytest
from postgres_server import new_database, postgres_server
from scripted_stack import REPLICAS, ManualClock, ScriptedStack, cap_action, weight_action
from watching import RATE_PER_S, SLOW, watched

from harness.action import Action
from harness.approval import Approve
from harness.execution import Executor
from harness.forecast.forecaster import Forecaster
from harness.gate.check import check
from harness.journal.journal import Journal
from harness.journal.lease import Lease
from harness.journal.record import Record
from harness.journal.store import Store, open_store
from harness.mode import Mode
from harness.policy import Policy
from stack.errors import UnreachableError
from stack.setting import Value
from stack.simulator.fleet import FleetSpec
from stack.simulator.load.generated import steady
from stack.simulator.simulation import Simulation
from stack.snapshot import Snapshot


@dataclass
class Bench:
    """An executor on a scripted stack, with a journal in a file so that a crash can be followed by a restart."""

    clock: ManualClock
    stack: ScriptedStack
    policy: Policy
    store: Store
    path: Path

    def __post_init__(self) -> None:
        self.journal = self.new_journal()
        self.executor = self.new_executor()

    def new_journal(self) -> Journal:
        return Journal(self.store, lease=Lease.take(self.store, "stack", clock=ManualClock()))

    def new_executor(self) -> Executor:
        return Executor(self.stack, self.journal, self.policy, self.clock, self.stack, simulated=True)

    def restart(self) -> Executor:
        self.store.close()
        self.store = open_store(self.path)
        self.journal = self.new_journal()
        self.executor = self.new_executor()
        return self.executor

    def watch(self, seconds: float, cycle_s: float = 20.0) -> list[Record]:
        ended: list[Record] = []
        for _ in range(int(seconds / cycle_s)):
            self.clock.sleep(cycle_s)
            ended += self.executor.supervise(self.stack.snapshot(60.0))
        return ended

    def propose(self, action: Action | None = None, mode: Mode = Mode.AUTO) -> Record:
        action = action or weight_action()
        snapshot = self.stack.snapshot(60.0)
        verdict = check(
            action,
            snapshot,
            self.executor.history(),
            self.policy,
            mode=mode,
            now_s=self.clock.now_s(),
            simulated=True,
        )
        return self.journal.propose(action, verdict, mode=mode, now_s=self.clock.now_s())

    def approve(self, record: Record) -> Record:
        return self.journal.decide(record.id, Approve("olga", record.proposal.digest), now_s=self.clock.now_s())

    def lower_caps_and_fail_on_one(self) -> Record:
        """A lower running cap for the whole fleet, which one replica does not take."""
        for replica in REPLICAS:
            self.stack.values["running_request_cap", replica] = 24.0

        def fail_on_r2(setting: str, target: str, value: Value) -> None:
            if target == "r2" and value == 16.0:
                raise UnreachableError("lost")

        self.stack.on_write = fail_on_r2
        return self.apply(cap_action(24.0, 16.0, target="fleet"))

    def apply(self, action: Action | None = None) -> Record:
        return self.executor.apply(self.propose(action).id, mode=Mode.AUTO)


@pytest.fixture(scope="session")
def quick_folder() -> Iterator[Path]:
    """Where journals that are killed lie: in memory where there is such a place, for a kill loses nothing written."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as name:
        yield Path(name)


@pytest.fixture(scope="session")
def server() -> Iterator[Path]:
    """A PostgreSQL server."""
    with postgres_server() as folder:
        yield folder


@pytest.fixture
def database(server: Path) -> str:
    """The URL of an empty database on it."""
    return new_database(server, f"journal_{uuid4().hex}")


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str:
    """Where a store may be: what is tested with this holds on both databases."""
    return tmp_path / "journal.db" if request.param == "sqlite" else request.getfixturevalue("database")


@pytest.fixture
def policy() -> Policy:
    return Policy.load()


@pytest.fixture
def bench(policy: Policy, tmp_path: Path) -> Iterator[Bench]:
    clock = ManualClock()
    path = tmp_path / "journal.db"
    bench = Bench(clock, ScriptedStack(clock), policy, open_store(path), path)
    yield bench
    bench.store.close()


@pytest.fixture(scope="session")
def slow_fleet() -> tuple[Forecaster, Snapshot]:
    """Four replicas of which all are a quarter slower than the tables say, and one twice as slow as the others."""
    scale = [1.25, 1.25, 1.25, 1.25]
    scale[SLOW] = 2.5
    return watched(Simulation(FleetSpec(), steady(RATE_PER_S, 500, seed=1), step_scale=scale))
