from dataclasses import replace

import pytest

from agent.trend import draining, needless
from agent.worth import enough, worth_of
from harness.action import Action, Forecast, Predicted, Trust
from harness.diagnosis import Finding
from harness.policy import Policy
from stack.layer import Layer
from stack.snapshot import Fact, Signal, Snapshot

PACE = Policy.load().pace


def forecast(share=(0.9, 0.9), e2e=(10.0, 10.0), trust=Trust.TRUSTED):
    effects = {
        "slo_share": Predicted(*share, share[1], share[1]),
        "e2e_p99_s": Predicted(*e2e, e2e[1], e2e[1]),
    }
    return Forecast(60.0, effects, trust)


def action(setting="running_request_cap", before=64.0, after=128.0, **more):
    return Action(
        setting=setting,
        target="fleet",
        before=before,
        after=after,
        cause="cap_too_small",
        layer=Layer.BATCHING,
        reason="",
        **more,
    )


def finding(severity=0.4, confidence=0.9):
    return Finding(
        layer=Layer.BATCHING,
        cause="cap_too_small",
        claim="",
        severity=severity,
        confidence=confidence,
        tunable=True,
    )


def test_a_change_that_makes_no_difference_is_no_repair():
    sure = finding(severity=0.9)
    for trust in Trust:
        assert not enough(action(forecast=forecast(trust=trust)), sure, PACE)[0]
        unseen = action("batch_in_flight_cap", forecast=forecast(trust=trust))
        assert enough(replace(unseen, layer=unseen.declaration.layer), sure, PACE)[0]


@pytest.mark.parametrize(
    ("predicted", "sure", "unsure"),
    [
        (forecast(share=(0.90, 0.95)), True, True),
        (forecast(share=(0.90, 0.91)), True, False),
        (forecast(e2e=(10.0, 9.0)), True, True),
        (forecast(e2e=(10.0, 9.8)), True, False),
        (forecast(share=(0.9, 0.85)), False, False),
        (forecast(e2e=(10.0, 12.0)), False, False),
        (forecast(share=(0.9, 0.85), e2e=(10.0, 5.0)), False, False),
        (forecast(share=(0.9, 0.99), trust=Trust.DOUBTED), True, False),
        (None, True, False),
    ],
)
def test_a_gain_is_needed_unless_a_sure_finding_is_repaired_without_harm(predicted, sure, unsure):
    candidate = action(forecast=predicted)
    assert enough(candidate, finding(severity=0.8), PACE)[0] is sure
    assert enough(candidate, finding(severity=0.4), PACE)[0] is unsure


def test_the_first_token_counts_where_whole_requests_are_unknown():
    effects = {"ttft_p99_s": Predicted(2.0, 1.0, 1.0, 1.0)}
    assert worth_of(Forecast(60.0, effects)).latency == pytest.approx(0.5)
    assert worth_of(Forecast(60.0, {})).score == 0


def queue(value, trend):
    facts = {Signal.WAITING: Fact(value, trend_per_min=trend)}
    return Snapshot(time_s=0.0, window_s=60.0, scrapes=4, replicas={}, fleet=facts)


@pytest.mark.parametrize(
    ("value", "trend", "gone_soon"),
    [(40, -60, True), (40, -40, True), (40, -10, False), (40, 20, False), (40, None, False), (0, -60, False)],
)
def test_a_queue_that_falls_fast_is_no_reason_to_act(value, trend, gone_soon):
    snapshot = queue(value, trend)
    assert draining(snapshot) is gone_soon
    assert needless(action(), snapshot) is gone_soon


def test_a_change_that_is_not_for_queues_does_not_look_at_them():
    assert not needless(action(before=128.0, after=64.0), queue(40, -60))
