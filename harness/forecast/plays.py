"""The rehearsals of one belief, kept as long as it holds, so that many changes are tried on the same future."""

import math
from dataclasses import dataclass, replace

from harness.forecast.belief import Belief, restricted
from harness.forecast.calibration import spread_over
from harness.forecast.rehearsal import Change, Pair, Rehearsal, rehearsals
from stack.snapshot import FLEET

HORIZON_MIN_S, HORIZON_MAX_S, HORIZON_STEP_S = 120.0, 300.0, 60.0
HORIZON_REQUESTS = 3000.0
"""A 99th percentile of fewer requests rests on less than thirty: where few arrive, the horizon is longer."""
SEED = 11
DRAWS_MAX = 10


@dataclass(frozen=True)
class Play:
    """One way of rehearsing.

    Attributes:
        draws: futures to play at least.
        replicas: a larger fleet is represented by so many of its replicas.
        horizon_max_s: looks no further than this.
        rate_ratio: load against what is believed.
        requests: over all futures together, as far as it takes no more than `DRAWS_MAX`.
    """

    draws: int
    replicas: int
    horizon_max_s: float = HORIZON_MAX_S
    rate_ratio: float = 1.0
    requests: float = 0.0

    def draws_for(self, requests: float) -> int:
        """More futures where each has few requests, and so says little."""
        return min(DRAWS_MAX, max(self.draws, round(self.requests / max(1.0, requests))))


WHOLE = Play(draws=4, replicas=8, requests=10_000.0)
SCREENED = Play(draws=2, replicas=4, horizon_max_s=120.0)
STRESSED = Play(draws=1, replicas=4, horizon_max_s=60.0, rate_ratio=2.0)


class Plays:
    """A belief and the rehearsals made of it so far."""

    def __init__(self, belief: Belief) -> None:
        self.belief = belief
        self._made: dict[tuple[Play, tuple[int, ...]], tuple[Rehearsal, ...]] = {}

    def pairs(self, change: Change, play: Play) -> list[Pair]:
        """Figures without and with the change, one pair a draw."""
        chosen = _represented(self.belief, change.target, play.replicas)
        key = (play, chosen)
        if key not in self._made:
            self._made[key] = self._rehearsals(play, chosen)
        return [(one.as_is, one.changed(change)) for one in self._made[key]]

    def _rehearsals(self, play: Play, chosen: tuple[int, ...]) -> tuple[Rehearsal, ...]:
        belief = self.belief if len(chosen) == len(self.belief.names) else restricted(self.belief, chosen)
        belief = replace(belief, load=belief.load.times(play.rate_ratio))
        until_s = min(play.horizon_max_s, horizon_s(self.belief))
        draws = play.draws_for(belief.load.arrivals_per_s * until_s)
        return rehearsals(belief, horizon_s=until_s, draws=draws, seed=SEED)


def horizon_s(belief: Belief) -> float:
    """How far to look: two minutes, the length of a long answer, and until enough requests have come."""
    longest = max(HORIZON_MIN_S, belief.answer_s, HORIZON_REQUESTS / belief.load.arrivals_per_s)
    return min(HORIZON_MAX_S, math.ceil(longest / HORIZON_STEP_S) * HORIZON_STEP_S)


def _represented(belief: Belief, target: str, count: int) -> tuple[int, ...]:
    """Replicas that stand for the fleet: all of a small one; of a large one the changed replica and a sample."""
    if len(belief.names) <= count:
        return tuple(range(len(belief.names)))
    if target == FLEET:
        return spread_over(belief, count)
    own = belief.names.index(target)
    others = [index for index in spread_over(belief, count) if index != own]
    return tuple(sorted({own, *others[: count - 1]}))
