"""The ways in which metrics say nothing that could be relied on: each makes an unsound snapshot of a sound one."""

import math
from collections.abc import Callable
from dataclasses import replace

from stack.snapshot import FLEET, Fact, Oddity, Signal, Snapshot

Blindness = Callable[[Snapshot], Snapshot]


def fleet(**values: float) -> Blindness:
    told = {Signal[name]: Fact(value, age_s=1.0) for name, value in values.items()}
    return lambda seen: replace(seen, fleet={**seen.fleet, **told})


def aged(age_s: float | None) -> Blindness:
    def of(seen: Snapshot) -> Snapshot:
        old = {name: {s: replace(f, age_s=age_s) for s, f in facts.items()} for name, facts in seen.replicas.items()}
        return replace(seen, replicas=old, fleet={s: replace(f, age_s=age_s) for s, f in seen.fleet.items()})

    return of


def only_nan(seen: Snapshot) -> Snapshot:
    nan = Fact(math.nan, age_s=1.0)
    replicas = {name: dict.fromkeys(facts, nan) for name, facts in seen.replicas.items()}
    return replace(seen, fleet=dict.fromkeys(seen.fleet, nan), replicas=replicas)


def without(signal: Signal, target: str) -> Blindness:
    def of(seen: Snapshot) -> Snapshot:
        if target == FLEET:
            return replace(seen, fleet={s: f for s, f in seen.fleet.items() if s is not signal})
        left = {s: f for s, f in seen.replicas[target].items() if s is not signal}
        return replace(seen, replicas={**seen.replicas, target: left})

    return of


def shifted(seconds: float) -> Blindness:
    return lambda seen: replace(seen, time_s=(seen.time_s or 0.0) + seconds)


BLIND: dict[str, Blindness] = {
    "stale facts": aged(31.0),
    "facts without age": aged(None),
    "facts of an age that is no number": aged(math.nan),
    "stale snapshot": shifted(-31.0),
    "snapshot from the future": shifted(31.0),
    "snapshot without time": lambda seen: replace(seen, time_s=None),
    "single scrape": lambda seen: replace(seen, window_s=0.0),
    "window unknown": lambda seen: replace(seen, window_s=None),
    "two scrapes": lambda seen: replace(seen, scrapes=2),
    "NaN everywhere": only_nan,
    "NaN in one signal": fleet(RUNNING=math.nan),
    "infinite": fleet(WAITING=math.inf),
    "negative": fleet(FINISHED=-1.0),
    "one signal missing": without(Signal.WAITING, FLEET),
    "the replica's own signal missing": without(Signal.RUNNING, "r1"),
    "two sources under one name": lambda seen: replace(seen, oddities={"r3": Oddity.DUPLICATED}),
    "samples ahead of the window": lambda seen: replace(seen, oddities={"gateway": Oddity.AHEAD}),
    "arrivals nobody accounts for": fleet(ARRIVED=900.0),
    "no requests that arrived account for the work": fleet(ARRIVED=0.0),
    "empty": lambda seen: replace(seen, fleet={}, replicas={}, settings={}),
}
