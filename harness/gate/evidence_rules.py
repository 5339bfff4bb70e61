"""Rules about the evidence: nothing is done blind."""

import math

from harness.gate.case import Answer, Case, allow, deny
from harness.gate.condition import is_down
from stack.snapshot import FLEET, Signal


def fresh_snapshot(case: Case) -> Answer:
    """Old facts describe another stack."""
    time_s, window_s, cap_s = case.snapshot.time_s, case.snapshot.window_s, case.policy.evidence.age_max_s
    if time_s is None or not math.isfinite(time_s):
        return deny("the snapshot carries no time, so its age is unknown")
    if not window_s:
        return deny("the snapshot covers no window: a single scrape says nothing about load")
    scrapes, least = case.snapshot.scrapes, case.policy.evidence.scrapes_min
    if scrapes < least:
        return deny(f"the window holds {scrapes} scrapes, at least {least}")
    age_s = case.now_s - time_s
    if not -1.0 <= age_s <= cap_s:
        return deny(f"the snapshot is {age_s:.0f} s old, at most {cap_s:g} s")
    return allow(f"the snapshot is {age_s:.0f} s old, at most {cap_s:g} s")


def fresh_facts(case: Case) -> Answer:
    """Each fact the decision rests on is there, finite and young."""
    if case.snapshot.time_s is None:
        return deny("the snapshot carries no time, so the age of its facts is unknown")
    behind_s, cap_s, oldest_s = case.now_s - case.snapshot.time_s, case.policy.evidence.age_max_s, 0.0
    for signal, target in _needed(case):
        fact = case.snapshot.fact(signal, target)
        if fact is None or not math.isfinite(fact.value) or fact.value < 0:
            return deny(f"{signal} of {target} is {'missing' if fact is None else fact.value}")
        if fact.age_s is None or not math.isfinite(fact.age_s):
            return deny(f"{signal} of {target} carries no time, so its age is unknown")
        oldest_s = max(oldest_s, behind_s + fact.age_s)
        if oldest_s > cap_s:
            return deny(f"{signal} of {target} is {oldest_s:.0f} s old, at most {cap_s:g} s")
    return allow(f"the oldest fact needed is {oldest_s:.0f} s old, at most {cap_s:g} s")


def enough_history(case: Case) -> Answer:
    """Without a past there is nothing to compare the effect with; protection does not wait for it."""
    watched_s, needed_s = case.history.watched_s, case.policy.evidence.history_min_s
    detail = f"watched for {watched_s:.0f} s, needed {needed_s:g} s"
    if case.protective and watched_s < needed_s:
        return allow(f"{detail}; a protective change does not wait")
    return allow(detail) if watched_s >= needed_s else deny(detail)


def _needed(case: Case) -> list[tuple[Signal, str]]:
    needed = [(Signal.RUNNING, FLEET), (Signal.WAITING, FLEET), (Signal.FINISHED, FLEET)]
    for target in case.targets:
        if is_down(case.snapshot, target):  # its engine tells nothing any more; that it is down is what must be known
            needed += [(Signal.UP, target)]
        elif target != FLEET:
            needed += [(Signal.RUNNING, target), (Signal.WAITING, target)]
    if case.raises_memory:
        needed += [(Signal.KV_USAGE_RATIO, replica) for replica in memory_replicas(case)]
    return needed


def memory_replicas(case: Case) -> tuple[str, ...]:
    """Replicas whose memory use the change may raise."""
    replicas = tuple(sorted(case.snapshot.replicas))
    if case.removes_capacity:
        return tuple(replica for replica in replicas if replica not in case.targets)
    return replicas if FLEET in case.targets else case.targets
