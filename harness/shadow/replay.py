"""The window after a decision, played again from the moment it was made: as it went, as decided, and otherwise.

The rehearsal is the forecast's own. What differs is what it is calibrated on: the arrivals, lengths and step times of
the time after the decision instead of those before it.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

from harness.forecast.belief import Belief, present_of
from harness.forecast.believing import believed
from harness.forecast.figures import Figures
from harness.forecast.held import held_of, started_of
from harness.forecast.plays import Play, Plays
from harness.forecast.rehearsal import Change, Pair
from harness.forecast.starving import starving_in
from harness.objective import Slo
from harness.shadow.score import Played
from stack.snapshot import Signal, Snapshot

FUTURES = 2
REPLICAS = 8
REQUESTS = 5000.0
"""Size of a replay: as many draws as give so many requests; of a larger fleet a sample stands for all."""
UNLIKE_RATIO = 0.2
COUNTING = 2.0
"""A replay is unlike the window when it answers a fifth more or fewer requests than were measured, and twice what
counting them explains on top."""
FIGURES = SHARE, FINISHED, LATENCY = "slo_share", "finished_per_s", "e2e_p50_s"


class Replay:
    """One window, and what its requests get under different changes.

    Args:
        then: what was seen when the decision was made: the state that the replay starts in.
        after: windows since, oldest first, one after another: what really came.
        window_s: how far it goes.

    Raises:
        NoBeliefError: what was seen does not support a replay.
    """

    def __init__(self, then: Snapshot, after: Sequence[Snapshot], slo: Slo, window_s: float) -> None:
        self.belief = _as_it_came(then, after, slo)
        # What came is known, so nothing is drawn around it.
        known = replace(self.belief, load=replace(self.belief.load, rate_spread=0.0))
        self._plays = Plays(known)
        self._play = Play(draws=FUTURES, replicas=REPLICAS, horizon_max_s=window_s, requests=REQUESTS)
        self._measured_per_s = _per_s(after, Signal.FINISHED)
        self._finished = self._measured_per_s * sum(one.window_s or 0.0 for one in after)
        self._pairs: dict[Change, list[Pair]] = {}

    def pairs(self, change: Change) -> list[Pair]:
        """Figures without and with a change, one pair a draw."""
        if change not in self._pairs:
            self._pairs[change] = self._plays.pairs(change, self._play)
        return self._pairs[change]

    def nothing(self) -> Played:
        """What the requests get when nothing is changed; some change must have been played before."""
        befores = [before for before, _ in next(iter(self._pairs.values()))]
        return Played(*(fmean(one.get(name, 0.0) for one in befores) for name in FIGURES))

    def changed(self, change: Change) -> Played:
        """What they get with a change. In a sample of a large fleet it is the difference that counts."""
        pairs, nothing = self.pairs(change), self.nothing()
        gain = fmean(after[SHARE] - before[SHARE] for before, after in pairs)
        share = min(1.0, max(0.0, nothing.share + gain))
        return Played(
            share, nothing.finished_per_s * _times(pairs, FINISHED), nothing.e2e_p50_s * _times(pairs, LATENCY)
        )

    @property
    def measured_finished_per_s(self) -> float:
        """Requests answered according to the metrics."""
        return self._measured_per_s

    def unlike(self, done: Change | None) -> str:
        """How a replay of what was done differs from what was measured; empty where it does not."""
        played, measured = self.nothing() if done is None else self.changed(done), self._measured_per_s
        replayed = played.finished_per_s
        slack = UNLIKE_RATIO + COUNTING / math.sqrt(max(1.0, self._finished))
        if abs(replayed - measured) <= slack * max(measured, replayed):
            return ""
        return f"{replayed:.2f} requests per second were answered in the replay, {measured:.2f} were measured"


def _as_it_came(then: Snapshot, after: Sequence[Snapshot], slo: Slo) -> Belief:
    """The stack as it stood then, with the load and the step times of the time since."""
    seen = believed(after[-1], after[:-1], slo)
    rate = _per_s(after, Signal.ARRIVED)
    return replace(
        seen,
        load=replace(seen.load, arrivals_per_s=rate) if rate > 0 else seen.load,
        present=present_of(then),
        held=held_of(then),
        started=started_of(then),
        starving=starving_in(then),
    )


def _per_s(windows: Sequence[Snapshot], signal: Signal) -> float:
    length_s = sum(one.window_s or 0.0 for one in windows)
    return sum(one.value(signal) or 0.0 for one in windows) / length_s if length_s else 0.0


def _times(pairs: Sequence[Pair], name: str) -> float:
    """By how many times a change multiplies a figure, over all draws; 1 where it is not there."""
    moves = [math.log(after[name] / before[name]) for before, after in pairs if _positive(before, after, name)]
    return math.exp(fmean(moves)) if moves else 1.0


def _positive(before: Figures, after: Figures, name: str) -> bool:
    return min(before.get(name, 0.0), after.get(name, 0.0)) > 0
