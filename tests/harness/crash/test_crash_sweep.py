"""Killed or failing at every operation of a change, and again at every operation of the recovery."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from action_points import HELPS, HURTS
from crash_ending import heal
from crash_points import Fault, Points, Seam
from crash_world import Session, World, live, prepared

from harness.journal.record import Record, State
from harness.policy import Policy

HARMLESS = {State.ROLLED_BACK, State.NOTHING_DONE}
RUNS_MIN = 500
STRIDE = 3
LONGEST = 1000


@dataclass
class Tally:
    """What a test did, for the end of the run.

    Attributes:
        runs: sessions that were killed or failed, each followed by a restart in peace and a look at all promises.
        points: operations at which the first of them died.
    """

    runs: int = 0
    points: int = 0


@pytest.fixture(scope="module", params=[HELPS, HURTS], ids=["kept", "rolled back"])
def world(request, quick_folder: Path) -> World:
    return prepared(quick_folder / f"{request.param}.db", Policy.load(), request.param)


@pytest.fixture
def tally(request: pytest.FixtureRequest, say) -> Iterator[Tally]:
    found, begun_s, wall_s = Tally(), time.process_time(), time.monotonic()
    yield found
    cpu_s, wall_s = time.process_time() - begun_s, time.monotonic() - wall_s
    took = f"{found.runs} runs from {found.points} points, {cpu_s:.0f} s of CPU time in {wall_s:.0f} s"
    say("crash sweep", [f"{request.node.name}: {took}"])


def test_killed_at_every_point_of_a_change_and_of_its_recovery(world: World, quick_folder: Path, tally: Tally):
    """Two kills, and a store that is still broken when the first restart comes.

    Where the first kill left a log and a stack that no earlier one left, the second comes at every operation of the
    recovery. Where it left what an earlier one left (log lines but for their times, and values in force), the recovery
    makes the same operations, and the second kill comes at every third, beginning one later each time.
    """
    ending = State.KEPT if world.helps < 1 else State.ROLLED_BACK
    assert [record.state for record in run(world, quick_folder, Points())[0]] == [ending]
    swept = set()
    for nth in range(1, LONGEST):
        broken = world.copy_to(quick_folder / "broken.db")
        broken.break_at(Points(nth))
        if live(broken, Session.change, Session.finish):
            break
        stride = STRIDE if left_behind(broken) in swept else 1
        swept.add(left_behind(broken))
        recoveries = [Points(1, Fault.ALWAYS), *(Points(again) for again in range(1 + nth % stride, LONGEST, stride))]
        for points in recoveries:
            recovered, ends = restarted(broken, quick_folder, points)
            assert ends <= HARMLESS | {ending}, (nth, points.nth, ends)
            tally.runs += 1
            if recovered:
                break
    tally.points = nth - 1
    assert nth > 55 and len(swept) >= 8
    assert tally.runs >= RUNS_MIN


@pytest.mark.parametrize("fault", [Fault.ONCE, Fault.ALWAYS])
def test_every_operation_fails_once_or_for_good(world: World, quick_folder: Path, fault: Fault, tally: Tally):
    for nth in range(1, LONGEST):
        records, reached = run(world, quick_folder, Points(nth, fault))
        if not reached:
            break
        tally.runs, tally.points = tally.runs + 1, nth
        if fault is Fault.ONCE:
            assert State.NEEDS_PERSON not in {record.state for record in records}, nth
    assert nth > 55


def test_a_store_that_breaks_for_good_and_breaks_again_in_the_recovery(world: World, quick_folder: Path, tally: Tally):
    """Broken from any transaction on, still broken at the restart; once repaired, every operation fails for good.

    The last only where the first left what no earlier one left, as above.
    """
    swept = set()
    for nth in range(1, LONGEST):
        broken, points = world.copy_to(quick_folder / "broken.db"), Points(nth, Fault.ALWAYS)
        broken.break_at(points)
        live(broken, Session.change, Session.finish)
        if not points.reached:
            break
        if points.broken is not Seam.COMMIT:
            continue
        tally.points += 1
        again = range(1, 2 if left_behind(broken) in swept else LONGEST)
        swept.add(left_behind(broken))
        for points in (Points(other, Fault.ALWAYS) for other in again):
            recovered, ends = restarted(broken, quick_folder, points)
            # a stack that never answers again is what a person is asked about
            assert points.broken is not Seam.COMMIT or State.NEEDS_PERSON not in ends, (nth, points.nth)
            tally.runs += 1
            if recovered:
                break
    assert tally.points > 40


def restarted(broken: World, place: Path, points: Points) -> tuple[bool, set[State]]:
    """A restart with `points` and one in peace: whether the first came to its own end, and how actions ended.

    A store that fails from the first operation on leaves the stack as it was.
    """
    twice = broken.copy_to(place / "twice.db")
    twice.break_at(points)
    recovered = live(twice, Session.finish)
    if points.nth == 1:
        assert twice.stack.writes == broken.stack.writes
    return recovered, {record.state for record in heal(twice)}


def run(world: World, place: Path, points: Points) -> tuple[list[Record], bool]:
    """One session with `points`, then one without; everything that was proposed, and whether the point was reached."""
    twin = world.copy_to(place / "run.db")
    twin.break_at(points)
    live(twin, Session.change, Session.finish)
    return heal(twin), points.reached


def left_behind(world: World) -> tuple[object, ...]:
    """What outlived a process: what is in the log, but for when, and what the stack holds and was sent."""
    with closing(sqlite3.connect(world.path)) as database:
        lines = database.execute("SELECT action_id, what, numbers FROM event ORDER BY seq").fetchall()
    return tuple(lines), tuple(sorted(world.stack.values.items())), len(world.stack.writes)
