"""Engines that die, refuse or stop, and HAProxy reloaded and restarted, with requests under way."""

import subprocess
import time

import pytest
from gateway_stack import Running, answers_now, running, wait_until

from stack.clock import WallClock
from stack.errors import InputError, UnreachableError
from stack.local.gateway.control import GatewayControl
from stack.local.gateway.files import write_files
from stack.local.gateway.held import counts, held
from stack.local.gateway.launch import check, command
from stack.local.gateway.reload import reload
from stack.reading import GATEWAY, Counter, Gauge
from stack.scrape import scraped
from stack.snapshot import FLEET

pytestmark = pytest.mark.real_stack

ONE = ({}, "{}")


@pytest.fixture
def stack():
    with running() as one:
        yield one


def test_a_killed_replica_is_out_within_ten_seconds_and_costs_new_requests_nothing(stack: Running):
    stack.send(4)
    stack.engines["r1"].die()
    answers = stack.send(20, gap_s=0.05)
    assert [one.status for one in answers] == [200] * 20
    assert wait_until(lambda: stack.control.state().status("r1").startswith("DOWN"), 10) < 10
    assert stack.shares(stack.send(6)) == {"r2": 6}
    stack.engines["r1"].start()
    wait_until(lambda: stack.control.state().status("r1") == "UP")
    assert set(stack.shares(stack.send(6))) == {"r1", "r2"}


def test_requests_that_wait_in_a_dying_engine_are_sent_to_another(stack: Running):
    """Those without an answer so far; one whose answer has begun breaks off."""
    stack.engines["r1"].slots, stack.engines["r1"].tokens, stack.engines["r1"].token_s = 1, 1000, 0.1
    with stack.sending([ONE] * 6) as sent:
        wait_until(lambda: sum(len(engine.posts) for engine in stack.engines.values()) == 6)
        time.sleep(0.3)
        waited = len(stack.engines["r1"].posts) - 1
        stack.engines["r1"].die()
    statuses = sorted(one.status for one in sent.result())
    assert statuses == [-1, 200, 200, 200, 200, 200]
    assert waited >= 1
    assert len(stack.engines["r2"].posts) == 5


def test_what_is_sent_again_and_what_is_not(stack: Running):
    """A stopping engine answers 500, one with a full queue 503 and Retry-After, which is the client's to obey."""
    bad, good = stack.engines["r1"], stack.engines["r2"]
    bad.status = 500
    assert [one.status for one in stack.send(8)] == [200] * 8
    assert len(good.posts) == 8
    bad.asked.clear()
    bad.status = 503
    answers = stack.send(8)
    refused = [one for one in answers if one.status == 503]
    assert len(bad.posts) == len(refused) >= 2
    assert {one.status for one in answers} == {200, 503}
    assert {one.headers.get("retry-after") for one in refused} == {"7"}
    bad.status, bad.drops = 200, True
    assert [one.status for one in stack.send(8)] == [200] * 8
    assert stack.control.state().status("r1") == "UP"
    bad.drops = False
    wait_until(lambda: not any(counts(stack.configuration).values()))


def test_a_request_that_waits_too_long_for_a_replica_is_told_when_to_come_again():
    with running(["r1"], queue_s=0.5) as stack:
        stack.control.write("replica_concurrency_cap", "r1", 1.0)
        stack.pause()
        with stack.sending([ONE]):
            wait_until(lambda: stack.control.sessions("r1") == 1)
            late = stack.send(1)[0]
        assert (late.status, late.headers["retry-after"]) == (503, "5")


def test_tokens_are_passed_on_as_they_come(stack: Running):
    for engine in stack.engines.values():
        engine.tokens, engine.token_s = 5, 0.3
    answer = stack.send(1)[0]
    assert answer.total_s - answer.first_s > 1.1


def test_the_exporter_is_read_right(stack: Running):
    stack.control.write("routing_weight", "r1", 50.0)
    stack.control.write("replica_concurrency_cap", "r1", 2.0)
    stack.send(3)
    stack.control.write("routing_policy", FLEET, "least_connections")
    stack.send(3)
    stack.control.write("replica_state", "r2", "drain")
    stack.pause()
    with stack.sending([ONE] * 5):
        wait_until(lambda: stack.control.state().queued == 3)
        found = {one.replica: one for one in scraped(f"{stack.configuration.gateway.metrics_url}/metrics", WallClock())}
    r1, r2, whole = found["r1"], found["r2"], found[GATEWAY]
    assert (r1.gauges[Gauge.GATEWAY_WEIGHT], r1.gauges[Gauge.GATEWAY_LIMIT], r1.gauges[Gauge.UP]) == (50, 2, 1)
    assert (r1.gauges[Gauge.GATEWAY_SESSIONS], r2.gauges[Gauge.GATEWAY_SESSIONS]) == (2, 0)
    assert (r1.configuration["gateway_state"], r2.configuration["gateway_state"]) == ("UP", "DRAIN")
    assert (whole.gauges[Gauge.GATEWAY_QUEUE], whole.gauges[Gauge.GATEWAY_SESSIONS]) == (3, 5)
    assert (whole.counters[Counter.SHED], whole.counters[Counter.ERRORS]) == (0, 0)
    assert r1.counters[Counter.ARRIVED] + r2.counters[Counter.ARRIVED] == 8
    assert whole.counters[Counter.ARRIVED] == 11
    stack.engines["r1"].status = 503
    stack.send(2)
    found = {one.replica: one for one in scraped(f"{stack.configuration.gateway.metrics_url}/metrics", WallClock())}
    assert found["r1"].counters[Counter.ERRORS] == found[GATEWAY].counters[Counter.ERRORS] == 2


def tuned(stack: Running) -> None:
    stack.control.write("routing_weight", "r1", 30.0)
    stack.control.write("replica_concurrency_cap", "r2", 7.0)
    stack.control.write("replica_state", "r1", "drain")
    stack.control.write("routing_policy", FLEET, "session_hash")
    stack.control.write("deadline_shedding_ratio", FLEET, 0.7)
    stack.control.write("batch_in_flight_cap", FLEET, 5.0)
    stack.control.set_slots("r1", 12)


def test_a_reload_loses_no_request_and_no_setting(stack: Running):
    tuned(stack)
    before = stack.control.state()
    for engine in stack.engines.values():
        engine.tokens, engine.token_s = 15, 0.2
    with stack.sending([ONE] * 16) as sent:
        wait_until(lambda: stack.control.sessions("r2") >= 7)
        after = reload(stack.configuration)
        assert stack.control.sessions("r2") >= 7, "the former worker's requests count"
        more = stack.send(5, gap_s=0.05)
    assert after.boot != before.boot
    assert (after.values, after.numbers) == (before.values, before.numbers)
    assert [one.tokens for one in sent.result()] == [15] * 16
    assert [one.status for one in more] == [200] * 5
    assert stack.process.poll() is None


def test_many_reloads_under_traffic(stack: Running):
    with stack.sending([ONE] * 400, gap_s=0.01) as sent:
        boots = {reload(stack.configuration).boot for _ in range(3)}
    assert len(boots) == 3
    assert [one.status for one in sent.result()] == [200] * 400


def test_a_killed_haproxy_is_found_out_and_its_values_written_back(stack: Running):
    tuned(stack)
    before = stack.control.state()
    stack.process.kill()
    stack.process.wait(10)
    wait_until(lambda: not answers_now(stack.configuration))
    with pytest.raises(UnreachableError, match=r"admin\.sock: HAProxy cannot be reached"):
        stack.control.write("routing_weight", "r1", 10.0)
    with pytest.raises(UnreachableError, match="/held: no answer"):
        held(stack.configuration)
    write_files(stack.configuration)
    stack.process = subprocess.Popen(command(stack.configuration), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: answers_now(stack.configuration))
        assert held(stack.configuration).boot != before.boot
        assert len(stack.control.restore(before.values, before.numbers)) == 7
        assert (stack.control.state().values, stack.control.state().numbers) == (before.values, before.numbers)
        assert stack.control.restore(before.values, before.numbers) == ()
    finally:
        stack.process.terminate()
        stack.process.wait(10)


def test_a_broken_configuration_is_told_in_one_line_and_never_loaded(stack: Running):
    lua = stack.configuration.run_folder / "gateway" / "haproxy.cfg"
    lua.write_text(lua.read_text() + "\nbackend x\n    no-such-keyword\n")
    with pytest.raises(InputError, match="no-such-keyword") as caught:
        check(stack.configuration)
    assert "\n" not in str(caught.value)
    assert GatewayControl(stack.configuration).read("routing_weight", "r1") == 100.0
