"""What a change would do: the simulator, calibrated on what the live metrics show and on nothing else."""

from collections import deque
from collections.abc import Iterable

from harness.action import Action, Forecast, Trust
from harness.forecast.belief import Belief
from harness.forecast.believing import NoBeliefError, believed
from harness.forecast.interval import effects_of
from harness.forecast.plays import SCREENED, STRESSED, WHOLE, Play, Plays, horizon_s
from harness.forecast.rehearsal import Change, Pair
from harness.forecast.track_record import Record, TrackRecord
from harness.forecast.trust import assumed, doubts_of
from harness.objective import Slo
from harness.outcome import Verification
from stack.errors import FlashVectorError
from stack.setting import SettingClass
from stack.snapshot import FLEET, Snapshot

LOAD_SNAPSHOTS = 8


class Forecaster:
    """Answers what-if questions, and remembers how right it was."""

    def __init__(self, slo: Slo, records: Iterable[tuple[Action, Verification | None]] = ()) -> None:
        """Start with nothing seen.

        Args:
            records: changes that ended before, with their forecasts and what was measured, oldest first.
        """
        self._slo = slo
        self._recent: deque[Snapshot] = deque(maxlen=LOAD_SNAPSHOTS)
        self._track = TrackRecord()
        self._known: tuple[Snapshot, Plays | str] | None = None
        for action, verification in records:
            self.record(action, verification)

    def observe(self, snapshot: Snapshot) -> None:
        """Learn from a snapshot; those that overlap the last one are passed over."""
        last = self._recent[-1] if self._recent else None
        if last is None or last.time_s is None or not snapshot.begins_before(last.time_s):
            self._recent.append(snapshot)

    def forecast(self, action: Action, snapshot: Snapshot) -> Forecast:
        """Predicted effect of `action`; one without effects, and the reason in its note, where none is possible."""
        return self._answer(action, snapshot, WHOLE)

    def screen(self, action: Action, snapshot: Snapshot) -> Forecast:
        """A rougher forecast, for comparing many changes, with the effects at twice the load beside it."""
        return self._answer(action, snapshot, SCREENED, STRESSED)

    def record(self, action: Action, verification: Verification | None) -> None:
        """Store predicted against measured, wherever both exist."""
        self._track.add(action, verification)

    @property
    def records(self) -> tuple[Record, ...]:
        """The latest predictions beside what was measured, oldest first."""
        return self._track.records

    @property
    def doubt(self) -> str:
        """Why no forecast is relied on at present, whatever it is about; empty when they are."""
        return self._track.doubt()

    def belief(self, snapshot: Snapshot) -> Belief | None:
        """What is believed of the stack; None when too little is known."""
        plays = self._plays(snapshot)
        return None if isinstance(plays, str) else plays.belief

    def _answer(self, action: Action, snapshot: Snapshot, play: Play, stress: Play | None = None) -> Forecast:
        if action.declaration.setting_class is SettingClass.C:
            return _none("it takes a restart, which is not rehearsed")
        plays = self._plays(snapshot)
        if isinstance(plays, str):
            return _none(plays)
        if action.target != FLEET and action.target not in plays.belief.names:
            return _none(f"there is no replica {action.target!r}")
        change = Change(action.setting, action.target, action.after)
        try:
            pairs = plays.pairs(change, play)
            stressed = [] if stress is None else plays.pairs(change, stress)
        except FlashVectorError as error:
            return _none(str(error))
        return self._made(action, plays.belief, pairs, stressed)

    def _made(self, action: Action, belief: Belief, pairs: list[Pair], stressed: list[Pair]) -> Forecast:
        doubts = [*doubts_of(belief, action), *filter(None, [self.doubt])]
        corrections = self._track.corrections()
        return Forecast(
            horizon_s=horizon_s(belief),
            effects=effects_of(pairs, corrections),
            trust=Trust.DOUBTED if doubts else Trust.TRUSTED,
            note="; ".join([*doubts, *assumed(belief, doubted=bool(doubts))]),
            stressed=effects_of(stressed, corrections) if stressed else {},
        )

    def _plays(self, snapshot: Snapshot) -> Plays | str:
        if self._known is None or self._known[0] is not snapshot:
            self._known = (snapshot, self._believing(snapshot))
        return self._known[1]

    def _believing(self, snapshot: Snapshot) -> Plays | str:
        try:
            return Plays(believed(snapshot, self._earlier(snapshot), self._slo))
        except NoBeliefError as error:
            return str(error)
        except FlashVectorError as error:
            return f"the stack cannot be simulated: {error}"

    def _earlier(self, snapshot: Snapshot) -> list[Snapshot]:
        """What was seen before the snapshot's own window."""
        if snapshot.time_s is None or snapshot.window_s is None:
            return []
        begin_s = snapshot.time_s - snapshot.window_s + 1e-6
        return [one for one in self._recent if one.time_s is not None and one.time_s <= begin_s]


def _none(reason: str) -> Forecast:
    return Forecast(0.0, {}, Trust.DOUBTED, f"no forecast: {reason}")
