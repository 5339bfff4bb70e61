"""Every setting of the gateway takes effect on real traffic through a real HAProxy."""

import contextlib
import time
from concurrent.futures import ThreadPoolExecutor

import contract
import pytest
from gateway_stack import Running, running, wait_until

from stack.catalogue import UNLIMITED
from stack.local.gateway.held import counts, held
from stack.local.gateway.layout import GATEWAY_SETTINGS
from stack.setting import Setting
from stack.snapshot import FLEET

pytestmark = pytest.mark.real_stack


@pytest.fixture(scope="module")
def shared():
    with running() as stack:
        yield stack


@pytest.fixture
def stack(shared: Running):
    """The same HAProxy for all tests, with its settings and engines as at the start of each."""
    for engine in shared.engines.values():
        engine.slots, engine.first_token_s, engine.token_s, engine.tokens, engine.status = 1000, 0.0, 0.01, 3, 200
        engine.paused, engine.most_running, engine.most_batch = False, 0, 0
    before = shared.control.state()
    yield shared
    shared.control.restore(before.values, before.numbers)


@pytest.mark.parametrize("setting", GATEWAY_SETTINGS, ids=lambda setting: setting.name)
def test_writes_are_set_to_value(stack: Running, setting: Setting):
    contract.check_a_write_is_set_to_value(stack.control, setting, "r1")


@pytest.mark.parametrize("setting", GATEWAY_SETTINGS, ids=lambda setting: setting.name)
def test_bad_values(stack: Running, setting: Setting):
    contract.check_bad_values_are_refused_and_nothing_changes(stack.control, setting, "r1")


def test_unknown_names(stack: Running):
    contract.check_unknown_names_are_refused(stack.control, "r1")


def test_what_is_held_can_be_read_without_a_way_to_write(stack: Running):
    stack.control.write("deadline_shedding_ratio", FLEET, 0.55)
    stack.control.write("batch_in_flight_cap", FLEET, 3.0)
    assert held(stack.configuration).values == stack.control.state().values
    assert held(stack.configuration).values["deadline_shedding_ratio"] == {FLEET: 0.55}


def test_weights_share_the_traffic(stack: Running):
    stack.control.write("routing_weight", "r1", 20.0)
    found = stack.in_turn(24)
    assert 2 <= found["r1"] <= 6, found


@pytest.mark.parametrize("policy", ["least_connections", "least_outstanding_tokens", "prefix_aware", "session_hash"])
def test_no_policy_sends_to_a_weight_of_zero_or_a_drained_replica(stack: Running, policy: str):
    stack.control.write("routing_policy", FLEET, policy)
    stack.control.write("routing_weight", "r1", 0.0)
    assert stack.in_turn(6) == {"r2": 6}
    assert stack.in_turn(4, headers={"x-session-id": "a"}) == {"r2": 4}
    stack.control.write("routing_weight", "r1", 100.0)
    stack.control.write("replica_state", "r2", "drain")
    time.sleep(0.3)
    assert stack.in_turn(6) == {"r1": 6}
    stack.control.write("replica_state", "r2", "ready")
    time.sleep(0.3)
    assert set(stack.shares(stack.send(10))) == {"r1", "r2"}


def test_draining_lets_requests_end(stack: Running):
    for engine in stack.engines.values():
        engine.tokens, engine.token_s = 10, 0.3
    with ThreadPoolExecutor(1) as pool:
        sent = pool.submit(stack.send, 8)
        wait_until(lambda: stack.control.sessions("r1") + stack.control.sessions("r2") == 8)
        assert stack.control.sessions("r1") >= 2
        stack.control.write("replica_state", "r1", "drain")
        assert stack.shares(stack.send(3)) == {"r2": 3}
        assert [one.tokens for one in sent.result()] == [10] * 8
    wait_until(lambda: stack.control.sessions("r1") == 0)


def test_a_concurrency_cap_keeps_requests_at_the_gateway(stack: Running):
    for name, engine in stack.engines.items():
        engine.first_token_s = 0.2
        stack.control.write("replica_concurrency_cap", name, 2.0)
    answers = stack.send(10)
    assert [one.status for one in answers] == [200] * 10
    assert {engine.most_running for engine in stack.engines.values()} == {2}
    assert max(one.first_s for one in answers) > 0.5


def test_least_connections_and_tokens_avoid_the_busy_replica(stack: Running):
    stack.engines["r1"].first_token_s = 3.0
    for policy in ("least_connections", "least_outstanding_tokens"):
        stack.control.write("routing_policy", FLEET, policy)
        found = stack.shares(stack.send(12, gap_s=0.12))
        assert found["r2"] >= 8, (policy, found)


def test_least_outstanding_tokens_weighs_prompts(stack: Running):
    """One long prompt outweighs many short ones; by connections the two replicas would get the same."""
    stack.control.write("routing_policy", FLEET, "least_outstanding_tokens")
    stack.pause()
    with stack.sending([({}, '{"prompt": "' + "x" * 30_000 + '"}')]) as first:
        wait_until(lambda: counts(stack.configuration)["under_care"] == 1)
        with stack.sending([({}, "{}")] * 10) as others:
            wait_until(lambda: counts(stack.configuration)["under_care"] == 11)
    found = {one.port for one in others.result()}
    assert len(found) == 1
    assert first.result()[0].port not in found


def test_prefix_aware_returns_to_where_the_prefix_is(stack: Running):
    stack.control.write("routing_policy", FLEET, "prefix_aware")
    prompts = [f'{{"messages": [{{"role": "user", "content": "{letter * 4000}' for letter in "abcd"]
    homes = [stack.send(1, body=prompt + '"}]}')[0].port for prompt in prompts]
    assert len(set(homes)) == 2
    for turn in ("one", "two"):
        assert [stack.send(1, body=f'{prompt} {turn}"}}]}}')[0].port for prompt in prompts] == homes


def test_sessions_stay_and_others_go_by_least_connections(stack: Running):
    stack.control.write("routing_policy", FLEET, "session_hash")
    homes = {}
    for session in (str(k) for k in range(8)):
        homes[session] = stack.in_turn(3, headers={"x-session-id": session})
        assert len(homes[session]) == 1
    assert len({next(iter(home)) for home in homes.values()}) == 2
    stack.engines["r1"].first_token_s = 2.0
    assert stack.shares(stack.send(10, gap_s=0.12))["r2"] >= 7


def test_a_hot_session_spills_at_the_load_bound(stack: Running):
    stack.control.write("routing_policy", FLEET, "session_hash")
    for engine in stack.engines.values():
        engine.first_token_s = 0.5
    assert min(stack.shares(stack.send(12, headers={"x-session-id": "hot"})).values()) >= 3


LONG = '{"prompt": "' + "x" * 9000 + '"}'
LANES = {
    "interactive": ({}, "{}"),
    "interactive long": ({}, LONG),
    "batch": ({"x-priority": "batch"}, "{}"),
    "batch long": ({"x-priority": "batch"}, LONG),
}
ORDER = {
    "fcfs": ["batch long", "batch", "interactive long", "interactive"],
    "class": ["interactive long", "interactive", "batch long", "batch"],
    "short_first": ["batch", "interactive", "batch long", "interactive long"],
    "class_short_first": ["interactive", "interactive long", "batch", "batch long"],
}


def lane_of(headers: dict[str, str], body: bytes | str) -> str:
    return ("batch" if "x-priority" in headers else "interactive") + (" long" if len(body) > 8000 else "")


@pytest.mark.parametrize("policy", list(ORDER))
def test_priority_policies_order_the_gateways_queue(stack: Running, policy: str):
    stack.control.write("priority_policy", FLEET, policy)
    stack.control.write("replica_state", "r2", "drain")
    stack.control.write("replica_concurrency_cap", "r1", 1.0)
    stack.pause()
    stack.engines["r1"].asked.clear()
    with contextlib.ExitStack() as sent:
        sent.enter_context(stack.sending([({}, "{}")]))
        wait_until(lambda: stack.control.sessions("r1") == 1)
        for n, lane in enumerate(ORDER["fcfs"], 1):
            sent.enter_context(stack.sending([LANES[lane]]))
            wait_until(lambda n=n: stack.control.state().queued == n)
    assert [lane_of(one.headers, one.body) for one in stack.engines["r1"].posts[1:]] == ORDER[policy]


def test_batch_cap_holds_batch_requests_only(stack: Running):
    for engine in stack.engines.values():
        engine.first_token_s = 0.5
    lanes = [LANES["batch"]] * 6 + [LANES["interactive"]] * 6
    stack.control.write("batch_in_flight_cap", FLEET, 1.0)
    assert [one.status for one in stack.send_each(lanes)] == [200] * 12
    assert {engine.most_batch for engine in stack.engines.values()} == {1}
    assert max(engine.most_running for engine in stack.engines.values()) > 2
    stack.control.write("batch_in_flight_cap", FLEET, UNLIMITED)
    stack.send_each(lanes)
    assert max(engine.most_batch for engine in stack.engines.values()) > 1
