"""Being faster by doing less work is harm, whoever does it and however it is counted."""

import pytest
from judging import CAP_ON_ALL, CAP_ON_ONE, SHEDDING, decided, treated
from made_fleet import Case, made
from stack_noise import ASSUMED

from harness.action import Action
from harness.outcome import Measured
from harness.verification.supervision import Fate
from stack.snapshot import Signal

FASTER = {"ttft": -0.6, "itl": -0.6}
CHEATS = {
    "scaled to zero": Case(served=0.0),
    "traffic dropped": Case(served=0.7, **FASTER),
    "errors returned fast": Case(served=0.7, errors=0.3, **FASTER),
    "few errors returned fast": Case(served=0.98, errors=0.02, **FASTER),
    "everything shed": Case(served=0.0, shed=1.0),
    "most shed": Case(served=0.1, shed=0.9, **FASTER),
}


@pytest.mark.parametrize("action", [CAP_ON_ALL, SHEDDING, CAP_ON_ONE], ids=["pool", "shedding", "one replica"])
@pytest.mark.parametrize("name", CHEATS)
def test_less_work_is_harm(name: str, action: Action):
    for seed in range(5):
        decision = decided(made(CHEATS[name], ASSUMED, seed, treated(action)), action)
        assert decision.fate is Fate.ROLL_BACK
        assert decision.verification is not None and decision.verification.measured is Measured.WORSE, decision.reason


def test_a_replica_whose_work_others_do_is_not_called_faster():
    for seed in range(20):
        moved = made(Case(share=0.3, **FASTER), ASSUMED, seed, ("r0",))
        decision = decided(moved, CAP_ON_ONE)
        assert decision.fate is Fate.ROLL_BACK, decision.reason


@pytest.mark.parametrize("lost", [Signal.ARRIVED, Signal.ERRORS, Signal.ITL_MEAN_S, Signal.E2E_MEAN_S])
def test_what_is_not_measured_any_more_is_not_taken_for_well(lost: Signal):
    gone = made(Case(lost=frozenset({lost}), **FASTER), ASSUMED, 1, treated(CAP_ON_ALL))
    decision = decided(gone, CAP_ON_ALL)
    assert decision.fate is Fate.ROLL_BACK
    assert decision.verification is not None and "not any more" in decision.reason
    whole = made(Case(**FASTER), ASSUMED, 1, treated(CAP_ON_ALL))
    assert decided(whole, CAP_ON_ALL).fate is Fate.KEEP
