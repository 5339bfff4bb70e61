"""How often verdicts are wrong, with the shipped windows and with the short ones of the stack without GPU.

Run: PYTHONPATH=. python benchmarks/verdict_windows.py [RUNS [POLICY...]]

On simulated fleets of two replicas, each with traffic of its own: a change that does nothing should not be kept as an
improvement, one that helps should not be undone, one that harms should not be kept. What the loop itself proposes
meanwhile is left unanswered.
"""

import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from agent.session import Session
from agent.settings import Settings
from agent.wiring import simulated_session
from harness.action import Action
from harness.approval import Approve
from harness.mode import Mode
from harness.outcome import Ending
from stack.layer import Layer
from stack.setting import Value
from stack.snapshot import FLEET

RUNS = 10
POLICIES = {"shipped": (None, 15.0, 60.0), "local-cpu": (Path("deploy/local-cpu-policy.toml"), 5.0, 30.0)}
"""Policy file, seconds between cycles and length of a snapshot's window."""
WATCHED_S = 600.0
LONGEST_S = 3600.0


@dataclass(frozen=True)
class Kind:
    """A kind of change: the fault it begins with, and what it makes of the value that all replicas hold."""

    fault: str
    value: Callable[[float], float]


KINDS = {
    "does nothing": Kind("", lambda held: held + 16),
    "helps": Kind("cap_too_small@480", lambda held: held + 16),
    "harms": Kind("", lambda _held: 4.0),
}


def ending(policy: str, kind: Kind, seed: int) -> Ending:
    """How one change ended."""
    path, cycle_s, window_s = POLICIES[policy]
    settings = Settings.load(
        mode=Mode.APPROVE, policy_path=path, cycle_s=cycle_s, window_s=window_s, enabled=("running_request_cap",)
    )
    faults = (kind.fault,) if kind.fault else ()
    session = simulated_session(settings, load=0.6, replicas=2, faults=faults, minutes=90.0, seed=seed)
    while session.elapsed_s < WATCHED_S:
        report = session.cycle()
    held = report.snapshot.settings["running_request_cap"]
    before = next(iter(held.values()))
    proposed = session.propose(action_of(before, kind.value(float(before))))
    if proposed.approval_id is None:
        raise SystemExit(f"the gate: {[f'{hit.rule}: {hit.detail}' for hit in proposed.verdict.hits]}")
    session.decide(proposed.approval_id, Approve("benchmark", proposed.digest))
    return _until_ended(session, proposed.approval_id)


def action_of(before: Value, after: float) -> Action:
    """The change, on every replica."""
    return Action(
        setting="running_request_cap",
        target=FLEET,
        before=before,
        after=after,
        cause="benchmark",
        layer=Layer.BATCHING,
        reason="to see how it is judged",
        requested_by="benchmark",
    )


def _until_ended(session: Session, number: int) -> Ending:
    while session.elapsed_s < WATCHED_S + LONGEST_S:
        session.cycle()
        for record in session.episodes():
            if record.id == number and record.outcome is not None:
                return record.outcome.ending
    raise SystemExit("a change came to no end")


def main() -> None:
    """Print a table."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else RUNS
    for policy in sys.argv[2:] or POLICIES:
        for name, kind in KINDS.items():
            counts = Counter(ending(policy, kind, seed).value for seed in range(runs))
            print(f"{policy:10} {name:13} {dict(counts)}", flush=True)


if __name__ == "__main__":
    main()
