"""Every fault at every point of an action and of its recovery; the table is printed at the end of the run."""

from collections.abc import Iterator, Mapping
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
KILLED = Fault("killed while the change settles", die)
SETTLING = next(point for point in POINTS if point.name == "settling")

Cells = dict[tuple[Fault, Point], State]


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


@pytest.fixture(scope="module")
def cells(say) -> Iterator[Cells]:
    found: Cells = {}
    yield found
    say("how an action ended, by fault and by where it was when the fault struck", table(found))


@pytest.mark.parametrize("point", POINTS, ids=lambda point: point.name)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_fault(fault: Fault, point: Point, worlds: Mapping[float, World], quick_folder: Path, cells: Cells):
    world = worlds[point.helps].copy_to(quick_folder / "matrix.db")
    world.busy_timeout_s = BUSY_S
    with world.repairs:
        strike(world, fault, point)
    ended = [record.outcome for record in heal(world)]
    found = State(ended[-1].ending.value) if ended else NOTHING
    cells[fault, point] = found
    assert len(ended) <= 1 and found in promised(fault, point)


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


def table(cells: Cells) -> list[str]:
    """A line per fault, a column per point; what nobody promised has an exclamation mark."""
    names = max(len(fault.name) for fault in FAULTS)
    lines = [" " * names + "".join(f"{point.name:>10}" for point in POINTS)]
    for fault in FAULTS:
        lines.append(f"{fault.name:{names}}" + "".join(f"{in_a_word(cells, fault, point):>10}" for point in POINTS))
    surprises = sum(found not in promised(*place) for place, found in cells.items())
    return [*lines, f"{len(cells)} of {len(FAULTS) * len(POINTS)} cells, {surprises} not as promised"]


def in_a_word(cells: Cells, fault: Fault, point: Point) -> str:
    found = cells.get((fault, point))
    if found is None:
        return "-"
    return WORDS[found] + ("" if found in promised(fault, point) else "!")
