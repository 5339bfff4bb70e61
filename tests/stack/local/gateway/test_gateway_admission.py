"""Admission on real traffic: what is refused, what is not, and that no count is ever lost."""

import contextlib
import socket
import struct
import time

import pytest
from gateway_stack import PATH, Running, running, wait_until

from stack.catalogue import UNLIMITED
from stack.clock import WallClock
from stack.local.gateway.held import counts
from stack.local.gateway.runtime import RuntimeSocket
from stack.reading import GATEWAY, Counter
from stack.scrape import scraped
from stack.snapshot import FLEET

pytestmark = pytest.mark.real_stack

ONE, BATCH = ({}, "{}"), ({"x-priority": "batch"}, "{}")


@pytest.fixture(scope="module")
def shared():
    with running() as stack:
        yield stack


@pytest.fixture
def stack(shared: Running):
    for engine in shared.engines.values():
        engine.paused, engine.first_token_s, engine.slots, engine.tokens, engine.token_s = False, 0.0, 1000, 3, 0.01
        engine.asked.clear()
    before = shared.control.state()
    yield shared
    shared.control.restore(before.values, before.numbers)
    wait_until(
        lambda: (
            not any(
                counts(shared.configuration)[key] for key in counts(shared.configuration) if key != "completions_per_s"
            )
        )
    )


def under_care(stack: Running, n: int) -> None:
    wait_until(lambda: counts(stack.configuration)["under_care"] == n)


def shed(stack: Running) -> float:
    found = scraped(f"{stack.configuration.gateway.metrics_url}/metrics", WallClock())
    return next(one for one in found if one.replica == GATEWAY).counters[Counter.SHED]


@pytest.mark.parametrize("capped", [False, True], ids=["queued in the engines", "queued at the gateway"])
def test_the_queue_limit_refuses_what_is_above_it_and_nothing_else(stack: Running, capped: bool):
    """Two replicas with two slots and a limit of three each: ten requests are taken, the others refused."""
    for name, engine in stack.engines.items():
        engine.slots = 2
        stack.control.set_slots(name, 2)
        if capped:
            stack.control.write("replica_concurrency_cap", name, 2.0)
    stack.control.write("queue_limit_requests", FLEET, 3.0)
    stack.pause()
    already = shed(stack)
    with contextlib.ExitStack() as sent:
        taken = [sent.enter_context(stack.sending([ONE])) for n in range(10) if not under_care(stack, n)]
        under_care(stack, 10)
        refused = stack.send(4)
        assert [one.status for one in refused] == [503] * 4
        assert all(1 <= int(one.headers["retry-after"]) <= 60 for one in refused)
        batch = sent.enter_context(stack.sending([BATCH]))
        under_care(stack, 11)
        assert shed(stack) - already == 4
    assert [one.result()[0].status for one in (*taken, batch)] == [200] * 11
    assert sum(len(engine.posts) for engine in stack.engines.values()) == 11


def test_a_full_house_without_a_queue_is_not_a_reason_to_refuse(stack: Running):
    """All slots free, a limit of one: a burst as large as the slots gets in."""
    for name in stack.engines:
        stack.control.set_slots(name, 8)
    stack.control.write("queue_limit_requests", FLEET, 1.0)
    assert [one.status for one in stack.send(14)] == [200] * 14


def sent_through_one_slot_each(stack: Running, n: int) -> float:
    """n requests at once, 0.18 s each on an idle machine; the completions per s."""
    for name, engine in stack.engines.items():
        engine.slots, engine.first_token_s = 1, 0.15
        stack.control.set_slots(name, 1)
    start_s = time.monotonic()
    stack.send(n)
    return n / (time.monotonic() - start_s)


def test_the_completion_rate_is_that_of_the_time_with_a_queue(stack: Running):
    per_s = sent_through_one_slot_each(stack, 40)
    assert 0.6 * per_s < counts(stack.configuration)["completions_per_s"] < 1.6 * per_s


def test_the_deadline_refuses_what_cannot_make_it(stack: Running):
    """Once the rate is known the engines stand still; it only falls then."""
    sent_through_one_slot_each(stack, 40)
    stack.control.write("deadline_shedding_ratio", FLEET, 2.0)
    stack.control.set_ttft_limits(1e5, 0.0, 1e5)
    stack.pause()
    with stack.sending([ONE] * 22):
        under_care(stack, 22)
        found = counts(stack.configuration)
        wait_s = 20 / found["completions_per_s"]
        stack.control.set_ttft_limits(wait_s / 4, 0.0, 1e5)
        late = stack.send(1)[0]
        assert late.status == 503
        assert 1 <= int(late.headers["retry-after"]) <= 60
        stack.control.set_ttft_limits(wait_s / 4, 1.0, 1e5)
        with stack.sending([BATCH]) as batch, stack.sending([({}, "x" * 4000)]) as long:
            under_care(stack, 24)
    assert batch.result()[0].status == long.result()[0].status == 200
    stack.control.set_ttft_limits(0.001, 0.0, 0.001)
    assert stack.send(1)[0].status == 200, "nothing waits"


def hang_up(stack: Running, text: str, wait_s: float, *, reset: bool) -> None:
    """Send, wait, and leave."""
    port = int(stack.configuration.gateway.url.rsplit(":", 1)[1])
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(text.encode())
        time.sleep(wait_s)
        if reset:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


@pytest.mark.parametrize("policy", ["round_robin", "least_outstanding_tokens", "prefix_aware", "session_hash"])
def test_clients_that_hang_up_leave_no_count_behind(stack: Running, policy: str):
    """In the middle of the body, in the gateway's queue, before and after the first token; closed and reset."""
    stack.control.write("routing_policy", FLEET, policy)
    whole = f"POST {PATH} HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{{}}"
    cut = whole.replace("content-length: 2", "content-length: 2000")
    for engine in stack.engines.values():
        engine.tokens, engine.token_s = 12, 0.1
    for name in stack.engines:
        stack.control.write("replica_concurrency_cap", name, 1.0)
    for reset in (False, True):
        hang_up(stack, cut, 0.1, reset=reset)
        hang_up(stack, whole, 0.5, reset=reset)
        stack.pause()
        hang_up(stack, whole, 0.3, reset=reset)
        with stack.sending([ONE] * 2):
            under_care(stack, 2)
            hang_up(stack, whole, 0.3, reset=reset)
        hang_up(stack, whole, 0.0, reset=reset)
    wait_until(lambda: set(all_counts(stack)) == {0.0}, 20)
    assert stack.control.sessions("r1") == stack.control.sessions("r2") == 0


def all_counts(stack: Running) -> list[float]:
    return [value for key, value in counts(stack.configuration).items() if key != "completions_per_s"]


def test_counts_are_right_over_threads(stack: Running):
    """Many at once over both of HAProxy's threads: the counts return to zero and every request is answered."""
    stack.control.write("routing_policy", FLEET, "least_outstanding_tokens")
    answers = stack.send(300)
    assert [one.status for one in answers] == [200] * 300
    wait_until(lambda: set(all_counts(stack)) == {0.0})
    shares = stack.shares(answers)
    assert min(shares.values()) > 90, shares


def test_no_failure_of_the_rules_breaks_a_request(stack: Running):
    """Numbers that are none: plain balancing goes on."""
    admin = RuntimeSocket(stack.configuration.run_folder / "gateway" / "admin.sock")
    names = ("queue_limit_requests", "deadline_shedding_ratio", "slots.r1", "ttft_limit_s")
    try:
        for name in names:
            admin.ask(f"set map numbers.map {name} junk")
        admin.ask("set map choices.map routing_policy no_such_policy")
        answers = stack.send(10)
        assert [one.status for one in answers] == [200] * 10
        assert min(stack.shares(answers).values()) >= 3
    finally:
        admin.ask("set map choices.map routing_policy round_robin")
        for name in names:
            admin.ask(f"set map numbers.map {name} {UNLIMITED:.0f}")


@pytest.mark.parametrize(
    "path",
    [
        "/flashvector/limits",
        "//flashvector/limits",
        "/v1/../flashvector/limits",
        "/v1/%2e%2e/flashvector/limits",
        "/%66lashvector/limits",
        "/sleep",
        "/reset_prefix_cache",
        "/collective_rpc",
        "/metrics",
        "/pause",
        "/v1/load_lora_adapter",
    ],
)
def test_routes_that_change_an_engine_are_closed(stack: Running, path: str):
    """They count neither as refused requests nor as errors of a replica."""
    already = shed(stack)
    for method in ("GET", "POST"):
        port = int(stack.configuration.gateway.url.rsplit(":", 1)[1])
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(
                f"{method} {path} HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{{}}".encode()
            )
            assert client.recv(1000).startswith(b"HTTP/1.1 403")
    assert not any(engine.posts for engine in stack.engines.values())
    assert shed(stack) == already
