"""An envelope killed or failing at every operation, and killed again at every operation of the recovery."""

from pathlib import Path

import pytest
from action_points import HELPS, HURTS
from crash_points import Fault, Points
from crash_world import live, prepared
from envelope_world import EnvelopeWorld, end_it, healed, move_in_it

from harness.envelope.record import EnvelopeState
from harness.policy import Policy

LONGEST = 1000
STRIDE = 5
HARMLESS = {EnvelopeState.ROLLED_BACK, EnvelopeState.NOTHING_DONE, EnvelopeState.AWAITING_APPROVAL}


@pytest.fixture(scope="module", params=[HELPS, HURTS], ids=["kept", "rolled back"])
def world(request, quick_folder: Path) -> EnvelopeWorld:
    path = quick_folder / f"envelope {request.param}.db"
    found = prepared(path, Policy.load(), request.param, EnvelopeWorld)
    assert isinstance(found, EnvelopeWorld)
    return found


def ending(world: EnvelopeWorld) -> EnvelopeState:
    return EnvelopeState.KEPT if world.helps < 1 else EnvelopeState.ROLLED_BACK


def test_killed_at_every_point_of_an_envelope_and_of_its_recovery(world: EnvelopeWorld, quick_folder: Path):
    whole = world.copy_to(quick_folder / "whole.db")
    assert live(whole, move_in_it, end_it)
    assert [record.state for record in healed(whole)] == [ending(world)]
    runs = 0
    for nth in range(1, LONGEST):
        broken = world.copy_to(quick_folder / "broken envelope.db")
        broken.break_at(Points(nth))
        if live(broken, move_in_it, end_it):
            break
        for again in range(1 + nth % STRIDE, LONGEST, STRIDE):
            twice = broken.copy_to(quick_folder / "twice envelope.db")
            twice.break_at(Points(again))
            recovered = live(twice, end_it)
            ends = {record.state for record in healed(twice)}
            assert ends <= HARMLESS | {ending(world)}, (nth, again, ends)
            runs += 1
            if recovered:
                break
    assert nth > 70 and runs > 200


@pytest.mark.parametrize("fault", [Fault.ONCE, Fault.ALWAYS])
def test_every_operation_of_an_envelope_fails_once_or_for_good(world: EnvelopeWorld, quick_folder: Path, fault: Fault):
    for nth in range(1, LONGEST):
        broken, points = world.copy_to(quick_folder / "failing envelope.db"), Points(nth, fault)
        broken.break_at(points)
        live(broken, move_in_it, end_it)
        if not points.reached:
            break
        ends = {record.state for record in healed(broken)}
        if fault is Fault.ONCE:
            assert EnvelopeState.NEEDS_PERSON not in ends, nth
    assert nth > 70
