"""A made-up fleet before the judge: the supervision that the executor asks in every cycle."""

from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from math import comb

from made_fleet import BEFORE, REPLICAS, SETTLE_S, WRITTEN_S, Case, made
from stack_noise import StackNoise

from harness.action import Action
from harness.journal.record import Permit, Record, State, Step
from harness.policy import Policy
from harness.verdict import Verdict
from harness.verification.block import BlockLog
from harness.verification.supervision import WAIT, Decision, Fate, Supervision
from stack.layer import Layer
from stack.setting import Value
from stack.snapshot import FLEET, Snapshot

POLICY = Policy.load()


def change(setting: str, before: Value, after: Value, target: str) -> Action:
    return Action(
        setting=setting, target=target, before=before, after=after, cause="made", layer=Layer.BATCHING, reason="made"
    )


CAP_ON_ONE = change("running_request_cap", 16.0, 24.0, "r0")
CAP_ON_ALL = change("running_request_cap", 16.0, 24.0, FLEET)
SHEDDING = change("deadline_shedding_ratio", 1e6, 0.8, FLEET)


def treated(action: Action) -> tuple[str, ...]:
    return REPLICAS if action.target == FLEET else (action.target,)


def applied(action: Action) -> Record:
    """The journal's row of a change that was written and is past its first look."""
    steps = tuple(Step(name, action.before, action.after) for name in treated(action))
    return Record(
        id=1,
        stack="made",
        action=action,
        state=State.PROBATION,
        verdict=Verdict(()),
        proposed_s=WRITTEN_S,
        expires_at=datetime.now(UTC),
        permit=Permit(steps, Verdict(()), 0),
        armed_s=WRITTEN_S,
        applied_s=WRITTEN_S,
        touched_s=WRITTEN_S,
    )


def decided(snapshots: list[Snapshot], action: Action, policy: Policy = POLICY) -> Decision:
    """What becomes of the change, looked at whenever a block is complete."""
    log = BlockLog(1e6, policy.evidence.age_max_s)
    supervision = Supervision(policy, log)
    record = applied(action)
    for place, snapshot in enumerate(snapshots):
        now_s = snapshot.time_s or 0.0
        log.observe(snapshot, now_s)
        if place == BEFORE - 1:
            log.cut(WRITTEN_S + SETTLE_S)
        if place >= BEFORE:
            decision = supervision.decide([record], snapshot, now_s, ())
            if decision.fate is not Fate.WAIT:
                return decision
    return WAIT


def verdicts(case: Case, action: Action, noise: StackNoise, seeds: Iterable[int]) -> Counter[str]:
    """How often each answer was given."""
    found: Counter[str] = Counter()
    for seed in seeds:
        decision = decided(made(case, noise, seed, treated(action)), action)
        found["undecided" if decision.verification is None else decision.verification.measured.value] += 1
    return found


def at_most(count: int, runs: int, confidence: float = 0.95) -> float:
    """Upper bound of the rate behind `count` events in `runs` (Clopper and Pearson 1934), by bisection."""
    low, high = count / runs, 1.0
    for _ in range(40):
        rate = (low + high) / 2
        seldom = sum(comb(runs, k) * rate**k * (1 - rate) ** (runs - k) for k in range(count + 1)) < 1 - confidence
        low, high = (low, rate) if seldom else (rate, high)
    return high
