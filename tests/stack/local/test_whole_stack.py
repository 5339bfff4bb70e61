"""The whole stack with small engines: HAProxy and Prometheus are real, and so is the traffic."""

import os
import signal
import sys
import threading
from contextlib import closing

import httpx
import pytest
from small_stack import small_stack, soon

from stack.local.control import LocalControl
from stack.local.gateway.control import GatewayControl
from stack.local.processes.engine_limits import EngineLimits
from stack.local.processes.events import EventLog
from stack.local.processes.gateway_gate import GatewayGate
from stack.local.processes.supervisor import Supervisor
from stack.local.processes.watch import watch
from stack.local.processes.watching import keepers, teller

pytestmark = pytest.mark.real_stack
WATCH = (sys.executable, "-c", "import time; time.sleep(600)")


@pytest.fixture
def supervisor(tmp_path):
    found = Supervisor(small_stack(tmp_path, whole=True, drain_s=5.0), WATCH)
    found.up(lambda line: None)
    soon(lambda: all(GatewayGate(found.stack).serves(name) for name in found.stack.names), within_s=20)
    yield found
    found.down(lambda line: None)


class Traffic:
    """Users who ask one request after the other through the gateway and note each answer."""

    def __init__(self, url, users=3):
        self._url, self._stop, self.statuses = url, threading.Event(), []
        self._users = [threading.Thread(target=self._ask) for _ in range(users)]

    def _ask(self):
        while not self._stop.wait(0.02):
            document = {"model": "small", "prompt": "a", "max_tokens": 1}
            self.statuses.append(httpx.post(f"{self._url}/v1/completions", json=document, timeout=20).status_code)

    def __enter__(self):
        for user in self._users:
            user.start()
        return self

    def __exit__(self, *error):
        self._stop.set()
        for user in self._users:
            user.join()


def test_all_serve_and_end(supervisor):
    names = ("r1", "r2", "gateway", "history", "watch")
    assert [(one.name, one.trouble) for one in supervisor.status()] == [(name, None) for name in names]
    supervisor.down(lambda line: None)
    assert [one.pid for one in supervisor.status()] == [None] * 5
    for url in (supervisor.stack.gateway.url, supervisor.stack.replicas[0].url):
        with pytest.raises(httpx.ConnectError):
            httpx.get(url)


def test_no_request_fails_while_all_replicas_are_restarted(supervisor):
    stack = supervisor.stack
    before = {one.name: one.pid for one in supervisor.status()}
    with Traffic(stack.gateway.url) as traffic:
        soon(lambda: len(traffic.statuses) > 10)
        events = []
        gate, limits = GatewayGate(stack), EngineLimits(stack)
        supervisor.restart((), "no_speculation", gate, limits, lambda *event: events.append(event))
        asked = len(traffic.statuses)
        soon(lambda: len(traffic.statuses) > asked + 10)
    after = {one.name: (one.pid, one.profile) for one in supervisor.status()}
    assert set(traffic.statuses) == {200}
    assert [target for _, target, _ in events] == ["r1", "r2"]
    assert all(after[name][0] != before[name] and after[name][1] == "no_speculation" for name in stack.names)
    assert after["gateway"][0] == before["gateway"]


def test_a_killed_gateway_comes_back_with_the_values_it_held(supervisor):
    stack, stop = supervisor.stack, threading.Event()
    tell = teller(stack, lambda line: None)
    with closing(LocalControl.of(stack)) as control:
        control.write("routing_weight", "r1", 50.0)
        kept = keepers(stack, control.write, tell)
        watcher = threading.Thread(target=watch, args=(kept, stack.run_folder, tell, stop))
        watcher.start()
        try:
            log = EventLog(stack.run_folder)
            soon(lambda: sum(one.what == "ready" for one in log.read()) == 4, within_s=20)
            (pid,) = [one.pid for one in supervisor.status() if one.name == "gateway"]
            os.kill(pid, signal.SIGKILL)
            soon(lambda: any(one.what == "lost" and one.target == "gateway" for one in log.read()), within_s=20)
            lost = max(one.time_s for one in log.read() if one.what == "lost")
            given_back = lambda: [one for one in log.read() if one.what == "restored" and one.time_s > lost]  # noqa: E731
            soon(given_back, within_s=20)
            assert [one.text for one in given_back()] == ["routing_weight of r1: 50.0"]
        finally:
            stop.set()
            watcher.join()
    assert GatewayControl(stack).read("routing_weight", "r1") == 50.0
