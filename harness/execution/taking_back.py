"""Taking back: the former values of an envelope's places are written and read back, each place by itself.

A replica that does not answer keeps no other from getting its value back.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from harness.envelope.envelope import Place, PlaceKey
from harness.execution.actuator import Actuator
from harness.execution.held import same
from stack.catalogue import in_words
from stack.errors import StackError
from stack.setting import Value

LOG = logging.getLogger(__name__)
Readable: TypeAlias = Mapping[PlaceKey, Value]
"""Values read back, of the places that answered."""


def read_back(actuator: Actuator, places: Iterable[Place]) -> Readable:
    """What the stack holds at each place that answers."""
    found: dict[PlaceKey, Value] = {}
    for place in places:
        try:
            found[place.key] = actuator.read(place.setting, place.target)
        except StackError as error:
            LOG.warning("%s on %s cannot be read back: %s", place.setting, place.target, error)
    return found


def write_back(actuator: Actuator, whose: str, places: Sequence[Place]) -> Readable:
    """Write the former values, last place first, where nobody else wrote, and read all places back.

    Raises:
        LeaseLostError: somebody else may write by now.
    """
    held = read_back(actuator, places)
    for place in reversed(places):
        if place.key not in held or not is_ours(place, held[place.key]):
            continue
        actuator.hold_if_possible()
        try:
            actuator.send(whose, place.setting, place.target, place.stored)
        except StackError as error:
            LOG.warning("%s: undo on %s failed: %s", whose, place.target, error)
    return read_back(actuator, places)


def is_ours(place: Place, held: Value) -> bool:
    """Whether a value is one that we left there."""
    ours = [place.stored, place.last, *([] if place.unsure_of is None else [place.unsure_of])]
    return any(same(held, value) for value in ours)


def somebody_else(places: Iterable[Place], held: Readable) -> str | None:
    """Who else wrote, in words: a value that none of our moves left; None when there is none."""
    for place in places:
        if place.key in held and not is_ours(place, held[place.key]):
            expected = (
                f"expected {in_words(place.stored)} or {in_words(place.last)} of {place.setting} on {place.target}"
            )
            return f"{expected}, read back {in_words(held[place.key])}: somebody else wrote, left alone"
    return None


def all_hold(places: Iterable[Place], held: Readable, *, stored: bool) -> bool:
    """Whether every place answered and has its former value, or the one last sent."""
    return all(place.key in held and same(held[place.key], place.stored if stored else place.last) for place in places)


def settled(place: Place, held: Value, now_s: float) -> Place:
    """The place by what it holds: the move is in force, and was made by `now_s` at the latest, or it was not made."""
    last = place.last if same(held, place.last) or place.unsure_of is None else place.unsure_of
    return replace(place, last=last, unsure_of=None, moved_s=now_s)
