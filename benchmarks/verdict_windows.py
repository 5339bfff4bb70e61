"""How often verdicts are wrong on simulated fleets, under the shipped windows and the short ones of a small stack.

Run: PYTHONPATH=. python benchmarks/verdict_windows.py [RUNS [POLICY...]]

A pool-wide change on two replicas is judged against the fleet's own past, a change of one replica of four against the
other three. A change that does nothing should not be kept as an improvement, one that helps should not be undone, one
that harms should not be kept. Every fleet has traffic of its own. Only the harness runs: nobody diagnoses or plans.
"""

import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from agent.simulated_run import SimulatedRun
from harness.action import Action
from harness.approval import Approve
from harness.execution import Executor
from harness.gate.check import check
from harness.journal.journal import Journal
from harness.journal.lease import Lease
from harness.journal.record import Record
from harness.journal.store import open_store
from harness.mode import Mode
from harness.policy import Policy
from stack.layer import Layer
from stack.setting import Value
from stack.simulator.fleet import FleetSpec
from stack.simulator.stack import SimulatedStack
from stack.snapshot import FLEET

RUNS = 10
STACK = "benchmark"
SETTING = "running_request_cap"
LOAD = 0.6
WATCHED_S = 1200.0
LONGEST_S = 3600.0


@dataclass(frozen=True)
class Windows:
    """How often and how far back is looked."""

    policy: Path | None
    cycle_s: float
    window_s: float


@dataclass(frozen=True)
class Fleet:
    """Where a change is made, and the fault that slows what was changed, and nothing else, at the same moment."""

    replicas: int
    target: str
    slowing: str


@dataclass(frozen=True)
class Kind:
    """A change: what it makes of the value held, the fault before it, and whether it slows what it is made on."""

    value: Callable[[float], float]
    fault: str = ""
    slows: bool = False


POLICIES = {
    "shipped": Windows(None, 15.0, 60.0),
    "local-cpu": Windows(Path("deploy/local-cpu-policy.toml"), 5.0, 30.0),
}
FLEETS = {
    "pool of two": Fleet(2, FLEET, "gpu_throttling"),
    "one of four": Fleet(4, FleetSpec(replicas=4).replica_names[0], "fragmentation:0"),
}
KINDS = {
    "does nothing": Kind(lambda held: held + 16),
    "helps": Kind(lambda held: held + 16, fault=f"cap_too_small@{WATCHED_S - 240:g}"),
    "slows by 40 to 50 %": Kind(lambda held: held + 16, slows=True),
    "blocks": Kind(lambda _held: 4.0),
}


@dataclass(frozen=True)
class Bench:
    """One fleet with the harness that looks after it."""

    stack: SimulatedStack
    journal: Journal
    executor: Executor
    policy: Policy
    windows: Windows

    def watch(self, until_s: float) -> tuple[Record, ...]:
        """Supervise until then, or until a change came to its end."""
        ended: tuple[Record, ...] = ()
        while self.stack.simulation.now_s < until_s and not ended:
            self.stack.clock.sleep(self.windows.cycle_s)
            ended = self.executor.supervise(self.stack.reader.snapshot(self.windows.window_s))
        return ended

    def apply(self, action: Action) -> None:
        """Make the change, approved by a person."""
        now_s, snapshot = self.stack.clock.now_s(), self.stack.reader.snapshot(self.windows.window_s)
        verdict = check(
            action, snapshot, self.executor.history(), self.policy, mode=Mode.APPROVE, now_s=now_s, simulated=True
        )
        record = self.journal.propose(action, verdict, mode=Mode.APPROVE, now_s=now_s)
        self.journal.decide(record.id, Approve("benchmark", record.proposal.digest), now_s=now_s)
        applied = self.executor.apply(record.id, mode=Mode.APPROVE, snapshot=snapshot)
        if applied.outcome is not None:
            raise SystemExit(f"the change was not made: {applied.outcome.reason}")


def bench(windows: Windows, fleet: Fleet, kind: Kind, seed: int) -> Bench:
    """A fresh fleet."""
    policy = Policy.load(windows.policy, enabled=(SETTING,))
    faults = [kind.fault] if kind.fault else []
    if kind.slows:
        faults.append(f"{fleet.slowing}@{WATCHED_S:g}")
    run = SimulatedRun(
        traffic="steady",
        load=LOAD,
        rate_scale=None,
        faults=tuple(faults),
        fleet=FleetSpec(replicas=fleet.replicas),
        minutes=(WATCHED_S + LONGEST_S) / 60,
        seed=seed,
        slo=policy.slo,
    )
    stack, store = run.stack(), open_store()
    journal = Journal(store, stack=STACK, lease=Lease.take(store, STACK))
    executor = Executor(
        stack.control, journal, policy, stack.clock, stack.reader, window_s=windows.window_s, simulated=True
    )
    return Bench(stack, journal, executor, policy, windows)


def ending(windows: Windows, fleet: Fleet, kind: Kind, seed: int) -> str:
    """How one change ended."""
    one = bench(windows, fleet, kind, seed)
    one.watch(WATCHED_S)
    held = one.stack.reader.snapshot(windows.window_s).settings[SETTING]
    before = next(iter(held.values()))
    one.apply(change(fleet.target, before, kind.value(float(before))))
    for record in one.watch(WATCHED_S + LONGEST_S):
        if record.outcome is not None:
            return record.outcome.ending.value
    raise SystemExit("a change came to no end")


def change(target: str, before: Value, after: float) -> Action:
    """The change of the cap."""
    return Action(
        setting=SETTING,
        target=target,
        before=before,
        after=after,
        cause="benchmark",
        layer=Layer.BATCHING,
        reason="to see how it is judged",
        requested_by="benchmark",
    )


def main() -> None:
    """Print a table."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else RUNS
    print("| policy | change of | the change | endings |\n|---|---|---|---|")
    for policy in sys.argv[2:] or POLICIES:
        for where, fleet in FLEETS.items():
            for name, kind in KINDS.items():
                counts = Counter(ending(POLICIES[policy], fleet, kind, seed) for seed in range(runs))
                told = ", ".join(f"{count} {what}" for what, count in counts.most_common())
                print(f"| {policy} | {where} | {name} | {told} |", flush=True)


if __name__ == "__main__":
    main()
