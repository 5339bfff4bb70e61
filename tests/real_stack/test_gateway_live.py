"""Routing and admission of the real stack, changed under load."""

import time
from statistics import median

import pytest
from live import Live, Say, arrived, within
from traffic import users

from stack.snapshot import FLEET

pytestmark = pytest.mark.real_stack


def test_weights_move_the_traffic(live: Live, say: Say):
    with users(live.url, 6, output=(8, 16)) as traffic:
        time.sleep(3.0)
        live.control.write("routing_weight", "r1", 25.0)
        before = arrived(live)
        time.sleep(12.0)
        sent = {name: count - before[name] for name, count in arrived(live).items()}
    say(f"weights 25 and 100: {sent}")
    assert sum(sent.values()) >= 20
    assert sent["r1"] / sum(sent.values()) == pytest.approx(0.2, abs=0.1)
    assert not traffic.failed, traffic.failed[:3]


def test_a_concurrency_cap_keeps_the_rest_at_the_gateway(live: Live):
    with users(live.url, 12) as traffic:
        time.sleep(2.0)
        for name in live.names:
            live.control.write("replica_concurrency_cap", name, 2.0)
        within(
            60,
            "both replicas run two at most",
            lambda: all(live.engine(n).limits()["running"] <= 2 for n in live.names),
        )
        time.sleep(3.0)
        assert all(live.engine(name).limits()["running"] <= 2 for name in live.names)
        assert all(live.engine(name).limits()["waiting"] == 0 for name in live.names)
    assert not traffic.failed, traffic.failed[:3]


def test_beyond_the_queue_limit_requests_are_refused_once_and_the_rest_is_whole(live: Live, say: Say):
    for name in live.names:
        live.control.write("running_request_cap", name, 4.0)
    sent_before = sum(arrived(live).values())
    with users(live.url, 20) as traffic:
        time.sleep(2.0)
        live.control.write("queue_limit_requests", FLEET, 2.0)
        changed_s = time.time()
        time.sleep(8.0)
        live.control.write("queue_limit_requests", FLEET, 1_000_000.0)
        lifted_s = time.time()
        time.sleep(4.0)
    refused = [one for one in traffic.answers if one.status == 503]
    assert refused
    assert all(one.begun_s >= changed_s - 0.5 for one in refused)
    assert not [one for one in refused if one.begun_s > lifted_s + 0.5]
    assert all(one.retry_after and int(one.retry_after) >= 1 for one in refused)
    assert set(traffic.statuses()) == {200, 503}
    assert all(one.whole for one in traffic.answers if one.status == 200)
    sent = sum(arrived(live).values()) - sent_before
    assert sent == traffic.statuses()[200], "a refused request was sent to a replica, or one was sent twice"
    took_s = sorted(one.ended_s - one.begun_s for one in refused)
    say(f"{dict(traffic.statuses())}, {sent:.0f} sent; refused in {median(took_s):.3f} s, slowest {took_s[-1]:.3f} s")
    assert median(took_s) < 0.2, "refusals wait"  # one may: two engines and their users share few cores


def test_a_drained_replica_gets_nothing_and_is_given_back(live: Live):
    with users(live.url, 6) as traffic:
        time.sleep(2.0)
        live.control.write("replica_state", "r1", "drain")
        drained = arrived(live)["r1"]
        within(60, "r1 is idle", lambda: live.engine("r1").limits()["running"] == 0)
        time.sleep(2.0)
        assert arrived(live)["r1"] == drained
        live.control.write("replica_state", "r1", "ready")
        within(20, "r1 works again", lambda: live.engine("r1").limits()["running"] > 0)
    assert not traffic.failed, traffic.failed[:3]
