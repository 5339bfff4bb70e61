from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from scripted_stack import ManualClock, ScriptedStack, weight_action

from harness.action import Action
from harness.execution import Executor
from harness.gate.check import check
from harness.journal.journal import Journal
from harness.journal.record import Record
from harness.journal.store import Store, open_store
from harness.mode import Mode
from harness.policy import Policy


@dataclass
class Bench:
    """An executor on a scripted stack, with a journal in a file so that a crash can be followed by a restart."""

    clock: ManualClock
    stack: ScriptedStack
    policy: Policy
    store: Store
    path: Path

    def __post_init__(self) -> None:
        self.journal = Journal(self.store)
        self.executor = self.new_executor()

    def new_executor(self) -> Executor:
        return Executor(self.stack, self.journal, self.policy, self.clock, self.stack, simulated=True)

    def restart(self) -> Executor:
        self.store.close()
        self.store = open_store(self.path)
        self.journal = Journal(self.store)
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

    def apply(self, action: Action | None = None) -> Record:
        return self.executor.apply(self.propose(action).id, mode=Mode.AUTO)


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
