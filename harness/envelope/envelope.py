"""What an envelope allows, and where the open one stands: plain data, shown to people and asked by the gate."""

from dataclasses import dataclass
from typing import TypeAlias

from harness.action import AGENT
from stack.catalogue import setting_named
from stack.setting import Scope
from stack.snapshot import FLEET, Signal

PlaceKey: TypeAlias = tuple[str, str]
"""A setting's name, and a replica, or the fleet for a setting of the pool."""


@dataclass(frozen=True, kw_only=True)
class Range:
    """How one setting may be moved.

    Attributes:
        setting: a numeric setting of class A.
        target: a replica; the fleet for the pool, or for each replica and all of them at once.
        low, high: inclusive, in the setting's unit.
        step: the longest single move, in the same unit.
        every_s: least time between two moves of one place.
        back_after_s: least time before a place is moved against its last move.
    """

    setting: str
    target: str = FLEET
    low: float
    high: float
    step: float
    every_s: float
    back_after_s: float

    def covers(self, place: PlaceKey) -> bool:
        """Whether it says how `place` may be moved."""
        return self.setting == place[0] and self.target in (FLEET, place[1])


@dataclass(frozen=True)
class Guard:
    """A figure of the fleet above which the envelope ends, when it is seen there twice in a row."""

    signal: Signal
    at_most: float


@dataclass(frozen=True, kw_only=True)
class Envelope:
    """What a person is asked to allow. It does nothing by itself: only harness.execution acts.

    Attributes:
        lasts_s: stack time from its opening to its end.
        guards: limits of its own beside the policy's hard stops, which always hold.
        reason: one sentence for people.
        requested_by: a user's name, or harness.action.AGENT.
    """

    ranges: tuple[Range, ...]
    lasts_s: float
    guards: tuple[Guard, ...] = ()
    reason: str = ""
    requested_by: str = AGENT

    def range_of(self, place: PlaceKey) -> Range | None:
        """The range that covers a place; None where it allows nothing."""
        return next((one for one in self.ranges if one.covers(place)), None)

    def places(self, replicas: tuple[str, ...]) -> tuple[PlaceKey, ...]:
        """Every place it may move in a pool of `replicas`, in the order of its ranges."""
        found: dict[PlaceKey, None] = {}
        for one in self.ranges:
            each = one.target == FLEET and setting_named(one.setting).scope is Scope.REPLICA
            found |= dict.fromkeys((one.setting, target) for target in (replicas if each else (one.target,)))
        return tuple(found)


@dataclass(frozen=True, kw_only=True)
class Place:
    """One place of an open envelope.

    Attributes:
        stored: value from before it was opened, which is the undo.
        last: value last sent, or `stored`.
        unsure_of: value from before a move that was not read back yet; None when `last` is in force.
        moved_s: when it was last moved; None when it was not.
        turn: sign of the last move.
        moves: how many were made.
    """

    setting: str
    target: str
    stored: float
    last: float
    unsure_of: float | None = None
    moved_s: float | None = None
    turn: int = 0
    moves: int = 0

    @property
    def key(self) -> PlaceKey:
        """Which place it is."""
        return self.setting, self.target


@dataclass(frozen=True)
class Leave:
    """The open envelope as the gate and a planner see it.

    Attributes:
        ends_s: stack time from which on nothing is moved in it any more.
        closing: its former values are being written back.
    """

    id: int
    envelope: Envelope
    approved_by: str
    ends_s: float
    places: tuple[Place, ...]
    closing: bool = False

    def place(self, key: PlaceKey) -> Place | None:
        """Where it stands at a place; None where it allows nothing."""
        return next((one for one in self.places if one.key == key), None)
