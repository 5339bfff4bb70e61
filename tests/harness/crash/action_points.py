"""Named points of an action and of its recovery, and a fault that strikes at one of them."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from crash_points import Points, Seam
from crash_world import World

from harness.journal.record import State

if TYPE_CHECKING:
    from faults import Fault

HELPS, HURTS = 0.7, 1.4


@dataclass(frozen=True)
class Point:
    """Where an action is when something happens.

    Attributes:
        state: of the action, as committed; None before anything is proposed.
        seam, when: the operation at which the fault strikes, the first of its kind in that state.
        helps: factor on the token time while the change is in force: below one it would be kept, above one undone.
        restarted: the process was killed while the change settled, and this is the recovery.
    """

    name: str
    state: State | None
    seam: Seam
    when: str
    helps: float = HELPS
    restarted: bool = False

    @property
    def permitted(self) -> bool:
        """Whether the permit is committed."""
        return self.state not in (None, State.APPROVED)

    @property
    def sent(self) -> bool:
        """Whether the stack has taken the change."""
        return self.permitted and (self.state is not State.ARMED or self.seam is Seam.WRITE)

    @property
    def taken_back(self) -> bool:
        """Whether the change is to be undone, whatever happens from here on."""
        return self.restarted or self.state is State.ROLLING_BACK

    @property
    def undone(self) -> bool:
        """Whether the stack has taken the undo."""
        return self.state is State.ROLLING_BACK and self.seam is Seam.WRITE

    @property
    def replying(self) -> bool:
        """Whether the reply to a write is on its way."""
        return self.seam is Seam.WRITE


POINTS = (
    Point("watching", None, Seam.SNAPSHOT, "before"),
    Point("approved", State.APPROVED, Seam.COMMIT, "after"),
    Point("permitted", State.ARMED, Seam.COMMIT, "after"),
    Point("written", State.ARMED, Seam.WRITE, "after"),
    Point("settling", State.SETTLING, Seam.SNAPSHOT, "before"),
    Point("probation", State.PROBATION, Seam.SNAPSHOT, "before"),
    Point("undoing", State.ROLLING_BACK, Seam.COMMIT, "after", HURTS),
    Point("undone", State.ROLLING_BACK, Seam.WRITE, "after", HURTS),
    Point("restart", State.SETTLING, Seam.COMMIT, "before", restarted=True),
    Point("r.undoing", State.ROLLING_BACK, Seam.COMMIT, "after", restarted=True),
    Point("r.undone", State.ROLLING_BACK, Seam.WRITE, "after", restarted=True),
)
"""What follows a write or a commit begins with the reply to it, so "undone" is: undo sent, not yet recorded."""


@dataclass(kw_only=True)
class Strike(Points):
    """The fault begins at the point; from then on operations meet it until it is over."""

    world: World
    point: Point
    what: "Fault"
    begun_s: float | None = field(default=None, init=False)
    met: int = field(default=0, init=False)

    def reach(self, seam: Seam, when: str) -> None:
        """One operation."""
        super().reach(seam, when)
        if self.begun_s is None and (seam, when) == (self.point.seam, self.point.when) and self._is_here():
            self.begun_s = self.world.clock.now_s()
            self.what.begin(self.world)
        if self.begun_s is None or (seam, when) not in self.what.at or self._is_over(self.begun_s):
            return
        self.met += 1
        self.what.meet(self.world)

    def _is_here(self) -> bool:
        return self.world.state()[0] == self.point.state

    def _is_over(self, begun_s: float) -> bool:
        return self.met >= self.what.times or self.world.clock.now_s() - begun_s > self.what.lasts_s
