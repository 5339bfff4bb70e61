"""Killed or failing at every operation of a change, and again at every operation of the recovery."""

import logging
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from crash_points import Fault, Points
from crash_world import Session, World, heal, live, prepared

from harness.journal.record import Record, State
from harness.policy import Policy

LOG = logging.getLogger(__name__)
HELPS, HURTS = 0.7, 1.4
HARMLESS = {State.ROLLED_BACK, State.NOTHING_DONE}
STRIDE = 4


@pytest.fixture(scope="module", params=[HELPS, HURTS], ids=["kept", "rolled back"])
def world(request, quick_folder: Path) -> World:
    return prepared(quick_folder / f"{request.param}.db", Policy.load(), request.param)


def test_killed_at_every_point_of_a_change_and_of_its_recovery(world: World, quick_folder: Path):
    ending = State.KEPT if world.helps < 1 else State.ROLLED_BACK
    assert [record.state for record in run(world, quick_folder, Points())[0]] == [ending]
    runs, nth, swept = 0, 0, set()
    while True:
        nth += 1
        broken = world.copy_to(quick_folder / "broken.db")
        broken.break_at(Points(nth))
        if live(broken, Session.change, Session.finish):
            break
        # A kill that left what an earlier one left is recovered from in the same way: a part of the points will do.
        stride = STRIDE if left_behind(broken) in swept else 1
        swept.add(left_behind(broken))
        for again in range(1 + nth % stride, 1000, stride):
            twice = broken.copy_to(quick_folder / "twice.db")
            twice.break_at(Points(again))
            recovered = live(twice, Session.finish)
            ends = {record.state for record in heal(twice)}
            assert ends <= HARMLESS | {ending}, (nth, again, ends)
            runs += 1
            if recovered:
                break
    assert nth > 70 and len(swept) >= 9
    LOG.info("%s points, %s different states left behind, %s runs with a second kill", nth - 1, len(swept), runs)
    assert runs > 300


@pytest.mark.parametrize("fault", [Fault.ONCE, Fault.ALWAYS])
def test_every_operation_fails_once_or_for_good(world: World, quick_folder: Path, fault: Fault):
    nth = 0
    while True:
        nth += 1
        records, reached = run(world, quick_folder, Points(nth, fault))
        if not reached:
            break
        if fault is Fault.ONCE:
            assert State.NEEDS_PERSON not in {record.state for record in records}, nth
    assert nth > 70


def run(world: World, place: Path, points: Points) -> tuple[list[Record], bool]:
    """One session with `points`, then one without; everything that was proposed, and whether the point was reached."""
    twin = world.copy_to(place / "run.db")
    twin.break_at(points)
    live(twin, Session.change, Session.finish)
    return heal(twin), points.reached


def left_behind(world: World) -> tuple[int, int]:
    """What outlived a process: how much is in the log, and how often the stack was written to."""
    with closing(sqlite3.connect(world.path)) as database:
        return database.execute("SELECT count(*) FROM event").fetchone()[0], len(world.stack.writes)
