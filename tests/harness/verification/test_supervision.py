"""What follows from a verdict, or from none."""

import pytest
from judging import CAP_ON_ONE, change, decided
from made_fleet import Case, made, slower
from stack_noise import SIMULATED

from harness.action import Action
from harness.outcome import Measured
from harness.verification.supervision import Fate

RESTART = change("worker_generation", 0.0, 1.0, "r0")


@pytest.mark.parametrize(("action", "fate"), [(RESTART, Fate.HOLD), (CAP_ON_ONE, Fate.ROLL_BACK)])
def test_a_restart_nobody_could_judge_is_left_to_a_person(action: Action, fate: Fate):
    decision = decided(made(Case(), SIMULATED, 1, ("r0",)), action)
    assert decision.verification is not None and decision.verification.measured is Measured.INCONCLUSIVE
    assert decision.fate is fate


def test_a_restart_that_harms_is_undone_like_any_other_change():
    assert decided(made(slower(0.3), SIMULATED, 1, ("r0",)), RESTART).fate is Fate.ROLL_BACK
