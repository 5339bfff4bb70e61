import math

import pytest

from harness.action import Action, Forecast, Predicted
from harness.forecast.track_record import TrackRecord
from harness.outcome import Measured, Verification
from stack.layer import Layer


def taught(ratios, predicted=0.8, spread=1.1, metric="e2e_p99_s"):
    track = TrackRecord()
    effects = {metric: Predicted(10.0, 10 * predicted, 10 * predicted / spread, 10 * predicted * spread)}
    action = Action(
        setting="routing_weight",
        target="replica-0",
        before=100.0,
        after=50.0,
        cause="",
        layer=Layer.ROUTING,
        reason="",
        forecast=Forecast(120.0, effects),
    )
    for ratio in ratios:
        found = {metric: {"before": 10.0, "after": 10 * ratio, "ratio": ratio}}
        track.add(action, Verification(Measured.IMPROVED, "", found))
    return track


def test_without_records_nothing_is_corrected():
    assert TrackRecord().corrections() == {} and TrackRecord().doubt() == ""


def test_a_bias_is_believed_the_more_the_more_often_it_was_seen():
    shifts = [taught([1.0] * n).corrections()["e2e_p99_s"].shift for n in (1, 4, 30)]
    whole = math.log(1.0 / 0.8)
    assert 0 < shifts[0] < shifts[1] < shifts[2] < whole
    assert shifts[1] == pytest.approx(whole / 2)


def test_misses_beyond_the_intervals_widen_them_and_hits_do_not_narrow_them():
    wild = taught([0.4, 1.6] * 5).corrections()["e2e_p99_s"]
    tame = taught([0.8] * 10).corrections()["e2e_p99_s"]
    assert wild.widening > 1.5 and abs(wild.shift) < 0.1
    assert tame.widening == 1.0 and tame.shift == pytest.approx(0.0)


def test_shares_are_corrected_by_differences():
    correction = taught([0.9] * 4, metric="slo_share", predicted=1.0).corrections()["slo_share"]
    assert -10 * 0.1 < correction.shift < 0


def test_wrong_signs_are_told():
    assert "only 0 of the last 4" in taught([1.2] * 4).doubt()
    assert taught([0.9] * 4).doubt() == ""
