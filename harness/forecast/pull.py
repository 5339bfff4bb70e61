"""Traffic that goes where no weight sends it: clients that hold on to a replica, or whatever else does that."""

from math import sqrt

from harness.forecast.belief import sorted_names
from stack.snapshot import FLEET, Signal, Snapshot

NOTICED = 0.2
SURE_DEVIATIONS = 4.0
"""A share counts as pulled when it is off by a fifth and by four times what counting explains."""
PULL_MAX = 2.5
"""Keeps weights within their bounds."""


def pulls_of(snapshot: Snapshot) -> tuple[float, ...]:
    """Each replica's arrivals over what its weight gives it in turns; 1 for all where nothing is pulled.

    Other policies than round robin follow speed and load, so there an uneven share says nothing.
    """
    names = sorted_names(snapshot)
    even = (1.0,) * len(names)
    if snapshot.settings.get("routing_policy", {}).get(FLEET, "round_robin") != "round_robin":
        return even
    counts = [snapshot.value(Signal.ARRIVED, name) or 0.0 for name in names]
    weights = [_weight(snapshot, name) for name in names]
    if sum(counts) <= 0 or sum(weights) <= 0:
        return even
    expected = [sum(counts) * weight / sum(weights) for weight in weights]
    pulls = [count / due if due > 0 else 1.0 for count, due in zip(counts, expected, strict=True)]
    noticed = any(
        due > 0 and abs(pull - 1.0) > max(NOTICED, SURE_DEVIATIONS / sqrt(due))
        for pull, due in zip(pulls, expected, strict=True)
    )
    return tuple(min(PULL_MAX, max(1 / PULL_MAX, pull)) for pull in pulls) if noticed else even


def _weight(snapshot: Snapshot, name: str) -> float:
    up = snapshot.value(Signal.UP, name)
    drained = snapshot.settings.get("replica_state", {}).get(name, "ready") != "ready"
    weight = snapshot.settings.get("routing_weight", {}).get(name, 100.0)
    return 0.0 if drained or up == 0 or isinstance(weight, str) else float(weight)
