"""From snapshots to a belief, or to the reason why there is none."""

from collections.abc import Sequence
from dataclasses import replace

from harness.forecast.belief import Belief, answers_held_back, blind_replicas, fleet_of, present_of, sorted_names
from harness.forecast.calibration import calibrated
from harness.forecast.load import load_of
from harness.forecast.pull import pulls_of
from harness.forecast.starving import starving_in
from harness.objective import Slo
from stack.errors import FlashVectorError
from stack.snapshot import Signal, Snapshot

SPREAD_MEASURED, SPREAD_UNMEASURED = 0.06, 0.25
"""Standard deviation of the logarithm of the step times' common error, with and without measured token times."""


class NoBeliefError(FlashVectorError):
    """The snapshots do not support a forecast; the text says why."""


def believed(snapshot: Snapshot, earlier: Sequence[Snapshot], slo: Slo) -> Belief:
    """The belief that a snapshot and those before it support.

    Args:
        earlier: snapshots whose windows end before this one's begins, oldest first.

    Raises:
        NoBeliefError: something that a forecast needs is not known.
    """
    load, fleet = load_of([*earlier, snapshot]), fleet_of(snapshot, slo)
    if isinstance(fleet, str):
        raise NoBeliefError(fleet)
    if load is None:
        raise NoBeliefError("arrivals or lengths of requests were not measured")
    if not snapshot.settings:
        raise NoBeliefError("the settings in force were not read")
    names = sorted_names(snapshot)
    belief = Belief(
        fleet=fleet,
        names=names,
        step_scale=(1.0,) * len(names),
        held=snapshot.settings,
        load=load,
        slo=slo,
        present=present_of(snapshot),
        held_back=answers_held_back(snapshot),
        pull=pulls_of(snapshot),
        blind=blind_replicas(snapshot),
        starving=starving_in(snapshot),
        answer_s=snapshot.value(Signal.E2E_P95_S) or 0.0,
    )
    calibration = calibrated(belief, snapshot)
    spread = SPREAD_MEASURED if any(calibration.measured) else SPREAD_UNMEASURED
    return replace(belief, step_scale=calibration.step_scale, scale_spread=spread)
