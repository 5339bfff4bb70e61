"""Every fault at every point of an action and of its recovery; the table is printed at the end of the run."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import pytest
from action_points import HELPS, HURTS, POINTS, Point, Strike
from crash_ending import heal
from crash_points import Points
from crash_world import CYCLE_S, LONGEST_CYCLES, Session, World, live, prepared
from faults import FAULTS, Fault, Left, die

from harness.journal.record import State
from harness.lease_keeper import LeaseKeeper
from harness.policy import Policy
from stack.errors import FlashVectorError, UnreachableError

KEPT, UNDONE, NOTHING, PERSON = State.KEPT, State.ROLLED_BACK, State.NOTHING_DONE, State.NEEDS_PERSON
WORDS = {KEPT: "kept", UNDONE: "undone", NOTHING: "nothing", PERSON: "person"}
BUSY_S = 0.05
HEADING = "how an action ended, by fault and by where it was when the fault struck"
KILLED = Fault("killed while the change settles", die)
SETTLING = next(point for point in POINTS if point.name == "settling")


def promised(fault: Fault, point: Point) -> frozenset[State]:
    """How an action may end, by what was promised; each line is one promise."""
    if fault.prevents and not point.permitted:
        return frozenset({NOTHING})  # blind, stopped, or what is decided cannot be written down: nothing new
    if fault.silent or Left.OTHER in (fault.becomes, changed(fault, point), undone(fault, point)):
        return frozenset({PERSON})  # unknown, or neither the former value nor the wanted one: hands off
    if changed(fault, point) is Left.FORMER:
        return frozenset({NOTHING})
    gone = fault.becomes is Left.FORMER and point.sent
    if not point.taken_back and not gone and not fault.undoes:
        return frozenset({KEPT} if fault.undoes is False else {KEPT, UNDONE})  # it helped, and that was measured
    if undone(fault, point) is Left.FORMER and not gone:
        return frozenset({PERSON})  # an undo that cannot be made
    # what was not recorded as made, and is gone when it is read back, counts as never made
    return frozenset({UNDONE, NOTHING} if point.state is State.ARMED else {UNDONE})


def changed(fault: Fault, point: Point) -> Left | None:
    """What the change left, if its write met the fault."""
    meets = not point.sent or (point.replying and point.state is State.ARMED and fault.change is Left.OTHER)
    return fault.change if meets else None


def undone(fault: Fault, point: Point) -> Left | None:
    """What the undo left, if there is one and its write met the fault."""
    meets = point.taken_back and (not point.undone or fault.undo is Left.OTHER)
    return fault.undo if meets else None


@pytest.fixture(scope="module")
def worlds(quick_folder: Path) -> Mapping[float, World]:
    return {helps: prepared(quick_folder / f"matrix {helps}.db", Policy.load(), helps) for helps in (HELPS, HURTS)}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_fault(fault: Fault, worlds: Mapping[float, World], quick_folder: Path, say):
    found = {point: ending(fault, point, worlds[point.helps].copy_to(quick_folder / "matrix.db")) for point in POINTS}
    say(HEADING, [line("", (point.name for point in POINTS)), line(fault.name, words(fault, found))])
    assert [point.name for point in POINTS if found[point] not in promised(fault, point)] == []


def ending(fault: Fault, point: Point, world: World) -> State:
    """How an action ends in `world` if the fault strikes at that point."""
    world.busy_timeout_s = BUSY_S
    with world.repairs:
        strike(world, fault, point)
    ended = [record.outcome for record in heal(world)]
    assert len(ended) <= 1
    return State(ended[0].ending.value) if ended else NOTHING


def strike(world: World, fault: Fault, point: Point) -> None:
    """Sessions until the fault is to be made good: one, or those before and after a restart."""
    tasks = [change, look_after]
    if point.restarted:
        world.break_at(Strike(world=world, point=SETTLING, what=KILLED))
        assert not live(world, *tasks)
        tasks = [look_after]
    points = Strike(world=world, point=point, what=fault)
    world.break_at(points)
    live(world, *tasks)
    assert points.begun_s is not None, "the point was never reached"
    if fault.broken_store:
        before = list(world.stack.writes)
        world.break_at(Points())
        live(world, look_after)
        assert world.stack.writes == before, "written on a store that was still broken"


def change(session: Session) -> None:
    """Propose the change and carry it out on facts that are read for it."""
    session.change(fresh=True)


def look_after(session: Session) -> None:
    """Cycles until nothing is open, with an ear for a stop."""
    keeper = LeaseKeeper(session.journal, session.executor, session.world.clock)
    for _ in range(LONGEST_CYCLES):
        if not session.journal.open_records():
            return
        session.world.clock.sleep(CYCLE_S)
        with suppress(FlashVectorError):  # as in the keeper's own thread
            keeper.tick()
        snapshot = None
        with suppress(UnreachableError):
            snapshot = session.world.stack.snapshot(CYCLE_S)
        session.executor.supervise(snapshot)


def words(fault: Fault, found: Mapping[Point, State]) -> Iterator[str]:
    """A word for each point; what nobody promised has an exclamation mark."""
    return (WORDS[found[point]] + ("" if found[point] in promised(fault, point) else "!") for point in POINTS)


def line(name: str, words: Iterable[str]) -> str:
    return f"{name:{max(len(fault.name) for fault in FAULTS)}}" + "".join(f"{word:>10}" for word in words)
