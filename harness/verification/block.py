"""Blocks: the facts of one window, kept so that before and after a change can be compared."""

import math
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

from stack.snapshot import FLEET, Facts, Oddity, Signal, Snapshot

Values: TypeAlias = Mapping[Signal, float]

COUNTS = frozenset(
    {
        Signal.ARRIVED,
        Signal.FINISHED,
        Signal.ABORTED,
        Signal.SHED,
        Signal.ERRORS,
        Signal.PROMPT_TOKENS,
        Signal.GENERATION_TOKENS,
        Signal.PREEMPTIONS,
    }
)
"""Signals that are added up when blocks are joined; all others are averaged by finished requests."""

UNSOUND = frozenset({Oddity.DUPLICATED, Oddity.AHEAD})
"""What is told under such a name is no account of it; after a restart counters are counted anew, which is."""

GAP_S = 1.0
"""Blocks further apart than this are not neighbours."""


@dataclass(frozen=True)
class Block:
    """Facts of one interval; blocks never overlap.

    Attributes:
        start_s, end_s: stack time.
        fleet: finite values over all replicas.
        replicas: the same per replica.
    """

    start_s: float
    end_s: float
    fleet: Values
    replicas: Mapping[str, Values]

    @property
    def length_s(self) -> float:
        """Length of the interval."""
        return self.end_s - self.start_s

    def of(self, target: str) -> Values:
        """Values of a replica or the fleet; empty when it was not seen."""
        return self.fleet if target == FLEET else self.replicas.get(target, {})


def block_of(snapshot: Snapshot) -> Block | None:
    """The block a snapshot describes; None when it is blind: no time, no window, or no count of finished requests."""
    fleet = _finite(snapshot.fleet)
    if snapshot.time_s is None or not snapshot.window_s or Signal.FINISHED not in fleet:
        return None
    replicas = {replica: _finite(facts) for replica, facts in snapshot.replicas.items()}
    return Block(snapshot.time_s - snapshot.window_s, snapshot.time_s, fleet, replicas)


def joined(blocks: Sequence[Block], length_s: float) -> tuple[Block, ...]:
    """Neighbouring blocks joined to about `length_s`; what is left before a gap or the end stays if half as long.

    Blocks on two sides of a gap are not joined: a gap is where something was written.
    """
    done: list[Block] = []
    part: list[Block] = []
    for block in blocks:
        if part and block.start_s - part[-1].end_s > GAP_S:
            done += _rest(part, length_s)
            part = []
        part.append(block)
        if sum(b.length_s for b in part) >= 0.95 * length_s:
            done.append(part[0] if len(part) == 1 else _join(part))
            part = []
    return (*done, *_rest(part, length_s))


class BlockLog:
    """Non-overlapping blocks out of the overlapping snapshots of every cycle, newest last."""

    def __init__(self, keep_s: float, age_max_s: float) -> None:
        self._keep_s = keep_s
        self._age_max_s = age_max_s
        self._not_before_s = -math.inf
        self._blocks: deque[Block] = deque()

    def observe(self, snapshot: Snapshot, now_s: float) -> bool:
        """Keep the snapshot as a block if it is sound and does not overlap the last one; False when blind or stale.

        What is unsound proves nothing, yet may show what must be stopped at once.
        """
        block = block_of(snapshot)
        if block is None or not self.sees(snapshot, now_s):
            return False
        if UNSOUND.intersection(snapshot.oddities.values()):
            return True
        last_s = self._blocks[-1].end_s if self._blocks else -math.inf
        if block.start_s >= max(last_s, self._not_before_s) - 0.02 * block.length_s:
            self._blocks.append(block)
            while self._blocks[0].end_s < block.end_s - self._keep_s:
                self._blocks.popleft()
        return True

    def sees(self, snapshot: Snapshot, now_s: float) -> bool:
        """Whether it tells of the present: it is a block, and its count of finished requests is young."""
        fact = snapshot.fact(Signal.FINISHED)
        if block_of(snapshot) is None or fact is None or snapshot.time_s is None:
            return False
        return now_s - snapshot.time_s + (fact.age_s or 0.0) <= self._age_max_s

    def close(self, snapshot: Snapshot) -> None:
        """Keep the snapshot a change is made on as the last block before it, if at least half of it is new.

        Trouble that grows shows most in its last minute. Counts are kept for the new part, by its share of the window;
        means and quantiles stay those of the window.
        """
        block = block_of(snapshot)
        if block is None or not self._blocks:
            return
        new_s = block.end_s - max(self._blocks[-1].end_s, self._not_before_s)
        if 0.5 * block.length_s <= new_s < block.length_s:
            self._blocks.append(_latest(block, new_s))

    def cut(self, time_s: float) -> None:
        """No later block may begin before `time_s`: what straddles a write belongs to neither side."""
        self._not_before_s = max(self._not_before_s, time_s)

    def between(self, start_s: float, end_s: float) -> tuple[Block, ...]:
        """Blocks that lie wholly inside."""
        slack = 0.02 * (self._blocks[-1].length_s if self._blocks else 0.0)
        return tuple(b for b in self._blocks if b.start_s >= start_s - slack and b.end_s <= end_s + slack)

    @property
    def seen_until_s(self) -> float | None:
        """When the newest block ended."""
        return self._blocks[-1].end_s if self._blocks else None

    def watched_s(self, now_s: float) -> float:
        """For how long the stack has been watched without a gap of two blocks, up to now."""
        if not self._blocks or now_s - self._blocks[-1].end_s > 2 * self._blocks[-1].length_s + self._age_max_s:
            return 0.0
        start_s = self._blocks[-1].start_s
        for late, early in pairwise(reversed(self._blocks)):
            if late.start_s - early.end_s > 2 * late.length_s + self._age_max_s:
                break
            start_s = early.start_s
        return now_s - start_s


def _latest(block: Block, length_s: float) -> Block:
    share = length_s / block.length_s

    def scaled(values: Values) -> Values:
        return {signal: value * share if signal in COUNTS else value for signal, value in values.items()}

    replicas = {name: scaled(values) for name, values in block.replicas.items()}
    return Block(block.end_s - length_s, block.end_s, scaled(block.fleet), replicas)


def _finite(facts: Facts) -> dict[Signal, float]:
    return {signal: fact.value for signal, fact in facts.items() if math.isfinite(fact.value) and fact.value >= 0}


def _rest(part: Sequence[Block], length_s: float) -> list[Block]:
    return [_join(part)] if sum(b.length_s for b in part) >= 0.5 * length_s else []


def _join(blocks: Sequence[Block]) -> Block:
    replicas = sorted({replica for block in blocks for replica in block.replicas})
    return Block(
        blocks[0].start_s,
        blocks[-1].end_s,
        _join_values([block.fleet for block in blocks]),
        {replica: _join_values([block.of(replica) for block in blocks]) for replica in replicas},
    )


def _join_values(parts: Sequence[Values]) -> Values:
    signals: Iterable[Signal] = sorted({signal for values in parts for signal in values})
    return {signal: _join_signal(signal, [v for v in parts if signal in v]) for signal in signals}


def _join_signal(signal: Signal, parts: Sequence[Values]) -> float:
    if signal in COUNTS:
        return sum(values[signal] for values in parts)
    weights = [values.get(Signal.FINISHED, 1.0) + 1e-9 for values in parts]
    return sum(w * values[signal] for w, values in zip(weights, parts, strict=True)) / sum(weights)
