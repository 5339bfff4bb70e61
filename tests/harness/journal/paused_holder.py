"""A program: a session that stops itself, as SIGSTOP from outside would, at one place of a change or of its undo.

Run as `paused_holder.py JOURNAL WRITTEN PAUSE LENGTH_S`; every write to its stack is a line of the file WRITTEN.
"""

import os
import signal
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))

from scripted_stack import ManualClock, ScriptedStack, weight_action

from harness.execution import Executor
from harness.gate.check import check
from harness.journal.journal import Journal
from harness.journal.lease import Lease
from harness.journal.store import Store, open_store
from harness.mode import Mode
from harness.policy import Policy


class Pausing(Journal):
    """Stops the process when the lease is to be looked at for the Nth time, directly before a write."""

    pause_at = 0

    def hold(self) -> str | None:
        self.pause_at -= 1
        if self.pause_at == 0:
            pause()
        return super().hold()


def pause() -> None:
    sys.stdout.write("pausing\n")
    sys.stdout.flush()
    os.kill(os.getpid(), signal.SIGSTOP)


def session(store: Store, written: Path, when: str, length_s: float) -> None:
    clock = ManualClock()
    stack = ScriptedStack(clock)
    written.touch()
    stack.on_write = lambda setting, target, value: written.write_text(f"{written.read_text()}{target} {value}\n")
    journal = Pausing(store, lease=Lease.take(store, "stack", length_s=length_s))
    policy = Policy.load()
    executor = Executor(stack, journal, policy, clock, stack, simulated=True)
    for _ in range(45):
        clock.sleep(20)
        executor.supervise(stack.snapshot(60))
    snapshot = stack.snapshot(60)
    history, now_s = executor.history(), clock.now_s()
    verdict = check(weight_action(), snapshot, history, policy, mode=Mode.AUTO, now_s=now_s, simulated=True)
    record = journal.propose(weight_action(), verdict, mode=Mode.AUTO, now_s=now_s)
    if when == "before the permit":
        read = stack.read
        stack.read = lambda setting, target: (read(setting, target), pause())[0]
    journal.pause_at = {"before the write": 1, "before the undo": 2}.get(when, 0)
    executor.apply(record.id, mode=Mode.AUTO, snapshot=snapshot)
    executor.undo_open("to see it undone")


if __name__ == "__main__":
    session(open_store(Path(sys.argv[1])), Path(sys.argv[2]), sys.argv[3], float(sys.argv[4]))
