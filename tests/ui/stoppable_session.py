"""A program: a session with a change in flight, that sleeps until a line on its standard input ends it.

Run as `stoppable_session.py JOURNAL sleeps|hangs|envelope`; one that hangs does so in the middle of its write, one with
an envelope has made a move inside it instead.
"""

import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "harness"))

from scripted_stack import ManualClock, ScriptedStack, weight_action

from harness.approval import Approve
from harness.envelope.envelope import Envelope, Range
from harness.execution import Executor
from harness.gate.check import check
from harness.gate.envelope_check import check_envelope
from harness.journal.journal import Journal
from harness.journal.lease import Lease
from harness.journal.store import open_store
from harness.lease_keeper import LeaseKeeper
from harness.mode import Mode
from harness.policy import Policy

HANGS_S = 120.0


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def session(path: Path, what: str) -> None:
    clock, store, policy = ManualClock(), open_store(path), Policy.load()
    stack = ScriptedStack(clock)
    journal = Journal(store, stack="small", lease=Lease.take(store, "small"))
    executor = Executor(stack, journal, policy, clock, stack, simulated=True)
    executor.recover()
    for _ in range(45):
        clock.sleep(20)
        executor.supervise(stack.snapshot(60))
    if what == "hangs":
        stack.on_write = lambda setting, target, value: (say("changed"), time.sleep(HANGS_S))
    with LeaseKeeper(journal, executor, clock):
        (move if what == "envelope" else change)(executor, journal, policy, stack)
        say("changed")
        sys.stdin.readline()
        say(f"holds {stack.values['routing_weight', 'r0']:g}")


def change(executor: Executor, journal: Journal, policy: Policy, stack: ScriptedStack) -> None:
    action, snapshot, now_s = weight_action(), stack.snapshot(60), stack.clock.now_s()
    verdict = check(action, snapshot, executor.history(), policy, mode=Mode.AUTO, now_s=now_s, simulated=True)
    record = journal.propose(action, verdict, mode=Mode.AUTO, now_s=now_s)
    executor.apply(record.id, mode=Mode.AUTO, snapshot=snapshot)


def move(executor: Executor, journal: Journal, policy: Policy, stack: ScriptedStack) -> None:
    weights = Range(setting="routing_weight", low=40, high=120, step=10, every_s=5, back_after_s=60)
    envelope, now_s = Envelope(ranges=(weights,), lasts_s=1200.0, requested_by="olga"), stack.clock.now_s()
    seen, history = stack.snapshot(60), executor.history()
    verdict = check_envelope(envelope, seen, history, policy, mode=Mode.APPROVE, now_s=now_s)
    asked = journal.envelopes.propose(envelope, verdict, mode=Mode.APPROVE, now_s=now_s)
    journal.envelopes.decide(asked.id, Approve("olga", asked.proposal.digest), now_s=now_s)
    executor.open_envelope(asked.id, mode=Mode.APPROVE)
    refused = executor.move(weight_action(100.0, 90.0), mode=Mode.APPROVE)
    assert refused is None, refused


if __name__ == "__main__":
    session(Path(sys.argv[1]), sys.argv[2])
