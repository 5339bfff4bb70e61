"""How often verdicts are wrong, on made-up fleets with measured noise, by the supervision that the executor asks.

A rate is bounded by its 95 % confidence limit: a pass says that the rate is below the bound, not only the count.
"""

import pytest
from judging import CAP_ON_ALL, CAP_ON_ONE, at_most, verdicts
from made_fleet import Case, slower
from stack_noise import ASSUMED, SIMULATED, StackNoise

from harness.outcome import Measured

SEED = 20_000
KEPT_HARM_MAX = 0.02
FALSE_ROLLBACK_MAX = 0.12
ROUGH_FALSE_ROLLBACK_MAX = 0.2
"""The same on the rougher, assumed noise, where 12 % is not reached."""
HARMS = (slower(0.3), slower(0.3, load_step=-0.3))
NULLS = (Case(), Case(load_step=0.3))
NOISES = pytest.mark.parametrize("noise", [ASSUMED, SIMULATED], ids=["assumed", "simulated"])


def seeds(runs: int) -> range:
    return range(SEED, SEED + runs)


@NOISES
def test_with_controls_a_slowdown_of_30_percent_is_not_kept(noise: StackNoise):
    steady, falling = (verdicts(case, CAP_ON_ONE, noise, seeds(80)) for case in HARMS)
    found = steady + falling
    assert at_most(found[Measured.IMPROVED], found.total()) <= KEPT_HARM_MAX, found
    assert found[Measured.WORSE] >= 0.95 * found.total(), found


@pytest.mark.parametrize(
    ("noise", "most"),
    [(ASSUMED, ROUGH_FALSE_ROLLBACK_MAX), (SIMULATED, FALSE_ROLLBACK_MAX)],
    ids=["assumed", "simulated"],
)
def test_with_controls_a_change_without_effect_is_seldom_called_worse(noise: StackNoise, most: float):
    steady, rising = (verdicts(case, CAP_ON_ONE, noise, seeds(50)) for case in NULLS)
    found = steady + rising
    assert at_most(found[Measured.WORSE], found.total()) <= most, found


def test_with_controls_a_gain_is_seen_through_a_rising_load():
    found = verdicts(slower(-0.2, load_step=0.3), CAP_ON_ONE, ASSUMED, seeds(40))
    assert found[Measured.IMPROVED] >= 38 and not found[Measured.WORSE], found


def test_without_controls_a_slowdown_of_30_percent_is_seldom_kept():
    steady, falling = (verdicts(case, CAP_ON_ALL, ASSUMED, seeds(80)) for case in HARMS)
    found = steady + falling
    assert at_most(found[Measured.IMPROVED], found.total()) <= KEPT_HARM_MAX, found


def test_the_bound_of_a_rate_is_that_of_the_tables():
    assert at_most(0, 100) == pytest.approx(0.0295, abs=1e-4)
    assert at_most(5, 100) == pytest.approx(0.1023, abs=1e-4)
