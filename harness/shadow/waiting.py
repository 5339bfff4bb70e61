"""Decisions whose window has not passed yet. They live in the process: what a restart loses stays without a score."""

from dataclasses import dataclass, field

from harness.forecast.forecaster import Forecaster
from harness.forecast.plays import HORIZON_MIN_S, horizon_s
from harness.objective import Slo
from harness.shadow.choice import Choice
from harness.shadow.judge import judged
from harness.shadow.record import ShadowRecord
from harness.shadow.score import Score
from stack.snapshot import Snapshot

GRACE_RATIO = 0.5
"""Windows need not touch; after so much more than the time that is asked for, what has been seen must do."""
ROUNDING_S = 0.5


@dataclass
class _Waiting:
    choice: Choice
    after: list[Snapshot] = field(default_factory=list)

    def add(self, snapshot: Snapshot) -> None:
        """Keep a snapshot whose window begins after the last one's end, or after the decision."""
        last_s = self.after[-1].time_s if self.after else self.choice.decided_s
        if snapshot.window_s and last_s is not None and not snapshot.begins_before(last_s):
            self.after.append(snapshot)

    def over(self, now_s: float) -> bool:
        """Whether enough has been seen, or nothing more is waited for."""
        seen_s = sum(one.window_s or 0.0 for one in self.after)
        length_s = self.choice.window_s
        return seen_s >= length_s - ROUNDING_S or now_s > self.choice.decided_s + (1.0 + GRACE_RATIO) * length_s


class WaitingChoices:
    """Watches what comes after each decision, and scores it when its window is over.

    Args:
        record: where scores are kept.
        forecaster: says how long a window is, and whether forecasts are relied on.
        slo: what a good request is.
    """

    def __init__(self, record: ShadowRecord, forecaster: Forecaster, slo: Slo) -> None:
        self._record, self._forecaster, self._slo = record, forecaster, slo
        self._waiting: dict[tuple[float, str, str], _Waiting] = {}

    @property
    def choices(self) -> tuple[Choice, ...]:
        """Those that wait, oldest first."""
        return tuple(one.choice for one in self._waiting.values())

    def window_s(self, snapshot: Snapshot) -> float:
        """How long to watch after a decision made on `snapshot`: as far as a forecast would look."""
        belief = self._forecaster.belief(snapshot)
        return HORIZON_MIN_S if belief is None else horizon_s(belief)

    def add(self, choice: Choice) -> None:
        """Wait for the window of a decision; one that waits already is not added again."""
        action = choice.action
        key = (choice.decided_s, *(("", "") if action is None else (action.setting, action.target)))
        self._waiting.setdefault(key, _Waiting(choice))

    def observe(self, snapshot: Snapshot, now_s: float) -> tuple[Score, ...]:
        """Learn from a snapshot; returns the scores that this made possible."""
        for one in self._waiting.values():
            one.add(snapshot)
        due = {key: one for key, one in self._waiting.items() if one.over(now_s)}
        scores = [judged(one.choice, one.after, self._slo, self._forecaster.doubt) for one in due.values()]
        for key, score in zip(due, scores, strict=True):
            self._record.add(score)
            del self._waiting[key]
        return tuple(scores)
