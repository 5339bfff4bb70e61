"""From snapshots to a belief, or to the reason why there is none."""

from collections.abc import Sequence
from dataclasses import replace
from math import hypot

from harness.forecast.belief import (
    Belief,
    answers_held_back,
    blind_replicas,
    fleet_of,
    present_of,
    sorted_names,
)
from harness.forecast.calibration import calibrated
from harness.forecast.clients import clients_in
from harness.forecast.held import held_of, started_of
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
    load, fleet = load_of([*earlier, snapshot]), fleet_of(snapshot, slo, earlier)
    if isinstance(fleet, str):
        raise NoBeliefError(fleet)
    if load is None:
        raise NoBeliefError("arrivals or lengths of requests were not measured")
    if not snapshot.settings:
        raise NoBeliefError("the settings in force were not read")
    if fleet.measured is not None:
        load = replace(load, clients=clients_in([*earlier, snapshot]))
    names = sorted_names(snapshot)
    belief = Belief(
        fleet=fleet,
        names=names,
        step_scale=(1.0,) * len(names),
        held=held_of(snapshot),
        load=load,
        slo=slo,
        present=present_of(snapshot),
        held_back=answers_held_back(snapshot),
        pull=pulls_of(snapshot),
        blind=blind_replicas(snapshot),
        starving=starving_in(snapshot),
        started=started_of(snapshot),
        answer_s=snapshot.value(Signal.E2E_P95_S) or 0.0,
    )
    calibration = calibrated(belief, snapshot, _alike(snapshot, earlier) if fleet.measured else ())
    spread = SPREAD_MEASURED if any(calibration.measured) else SPREAD_UNMEASURED
    if fleet.measured is not None:
        spread = hypot(spread, fleet.measured.error_ratio)
    return replace(belief, step_scale=calibration.step_scale, scale_spread=spread)


def _alike(snapshot: Snapshot, earlier: Sequence[Snapshot]) -> list[Snapshot]:
    """The newest windows in a row with the same replicas and settings, oldest first."""
    found: list[Snapshot] = []
    for one in reversed(earlier):
        if one.settings != snapshot.settings or one.replicas.keys() != snapshot.replicas.keys():
            break
        found.insert(0, one)
    return found
