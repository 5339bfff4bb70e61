"""What was done lately, as the gate sees it: plain data derived from the journal."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from harness.envelope.envelope import Leave
from harness.outcome import Ending
from stack.setting import SettingClass, Value
from stack.snapshot import FLEET

HOUR_S = 3600.0
DAY_S = 24 * HOUR_S


@dataclass(frozen=True, kw_only=True)
class Past:
    """One action that wrote to the stack.

    Attributes:
        written_s: when its value was written.
        touched_s: when it last wrote anything, its undo included.
        settling: written, first look not yet taken (or not known to be written, or being undone).
        in_probation: past its first look, not yet judged.
        hard_stopped: undone at once because something broke.
        envelope: of which it sums up the moves of one place; None for a change of its own.
    """

    setting: str
    target: str
    setting_class: SettingClass
    before: Value
    after: Value
    written_s: float
    touched_s: float
    settling: bool = False
    in_probation: bool = False
    ending: Ending | None = None
    hard_stopped: bool = False
    envelope: int | None = None

    @property
    def direction(self) -> int:
        """Sign of the move; 0 for a choice."""
        return direction(self.before, self.after)

    @property
    def moved(self) -> bool:
        """Whether the value it wrote is still what it left behind."""
        return self.ending in (None, Ending.KEPT)


@dataclass(frozen=True)
class History:
    """The stack's recent changes.

    Attributes:
        past: actions that wrote within the last day, oldest first, and all open ones.
        frozen: why all changes are halted; None when they are not.
        watched_s: for how long the stack has been watched without a gap.
        refused_s: when the planner's proposals of the last hours were made that the gate denied or a person rejected.
        earned: settings that may act by themselves because their shadow record passes the bar.
        seen_until_s: when the newest window that was watched ended; None when there is none.
        leave: the envelope in force; None when there is none.
    """

    past: tuple[Past, ...] = ()
    frozen: str | None = None
    watched_s: float = 0.0
    refused_s: tuple[float, ...] = ()
    earned: frozenset[str] = frozenset()
    seen_until_s: float | None = None
    leave: Leave | None = None

    def on(self, setting: str, target: str) -> Iterator[Past]:
        """Actions on the same setting whose target overlaps `target`, oldest first."""
        return (p for p in self.past if p.setting == setting and (p.target == target or FLEET in (p.target, target)))

    def since(self, time_s: float) -> Iterator[Past]:
        """Actions written at or after `time_s`; moves inside an envelope have a rate of their own and do not count."""
        return (p for p in self.past if p.written_s >= time_s and p.envelope is None)

    def rollback_times_s(self) -> tuple[float, ...]:
        """When actions were undone; an envelope is undone once, however many places it moved."""
        undone = [p for p in self.past if p.ending is Ending.ROLLED_BACK]
        single = [p.touched_s for p in undone if p.envelope is None]
        return (*single, *{p.envelope: p.touched_s for p in undone if p.envelope is not None}.values())

    def reversal_times_s(self, setting: str, target: str) -> tuple[float, ...]:
        """When the setting was moved against its previous move; undone moves do not count."""
        moves = [p for p in self.on(setting, target) if p.moved and p.direction]
        pairs = pairwise(moves)
        return tuple(late.written_s for early, late in pairs if early.direction == -late.direction)


def direction(before: Value, after: Value) -> int:
    """Sign of a move between two values; 0 for a choice."""
    if isinstance(before, str) or isinstance(after, str):
        return 0
    return (after > before) - (after < before)


def crowded(times_s: Iterable[float], most: int, now_s: float, hold_s: float) -> int:
    """How many times lay within one hour, if `most` or more did and the last is at most `hold_s` ago; else 0."""
    ordered = sorted(times_s)
    counts = [sum(last - HOUR_S <= t <= last for t in ordered) for last in ordered if last >= now_s - hold_s]
    return max((count for count in counts if count >= most), default=0)
