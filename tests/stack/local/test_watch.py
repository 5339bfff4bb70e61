"""The watcher brings back what was lost, gives it its values, and keeps out of what is done on purpose."""

import os
import signal
import threading

import httpx
import pytest
from small_stack import lives, small_stack, soon

from stack.errors import InputError
from stack.local.processes.events import EventLog
from stack.local.processes.held_values import HeldValues
from stack.local.processes.process import ManagedProcess
from stack.local.processes.replica_process import profile_file
from stack.local.processes.services import services
from stack.local.processes.watch import watch
from stack.local.processes.watching import keepers, teller


class Watcher:
    """Watches a stack in this process and notes what it writes."""

    def __init__(self, stack):
        self.stack, self.written, self._stop = stack, [], threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self.services = {service.name: service for service in services(stack)}

    def _watch(self):
        tell = teller(self.stack, lambda line: None)
        kept = keepers(self.stack, lambda *value: self.written.append(value), tell)
        watch(kept, self.stack.run_folder, tell, self._stop, period_s=0.1)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *error):
        self._stop.set()
        self._thread.join(20)

    def pid(self, name="r1"):
        running = self.services[name].process.running()
        return running and running.identity.pid

    def told(self, *what):
        return [one for one in EventLog(self.stack.run_folder).read() if one.what in what]


@pytest.fixture
def stack(tmp_path):
    found = small_stack(tmp_path, replicas=1, stuck_s=0.5)
    yield found
    for service in services(found):
        service.stop()


def ready(watcher, times=1):
    soon(lambda: len(watcher.told("ready")) == times, within_s=15)


def test_a_killed_replica_comes_back_without_its_old_children(stack):
    with Watcher(stack) as watcher:
        ready(watcher)
        pid, child = watcher.pid(), httpx.get(f"{stack.replicas[0].url}/", trust_env=False).json()["child"]
        os.kill(pid, signal.SIGKILL)
        ready(watcher, times=2)
        assert watcher.pid() not in (None, pid) and not lives(child)
    assert [(one.what, one.target) for one in watcher.told("started", "lost", "ready")] == [
        ("started", "r1"),
        ("ready", "r1"),
        ("lost", "r1"),
        ("started", "r1"),
        ("ready", "r1"),
    ]
    assert "r1 was ended by SIGKILL" in watcher.told("lost")[0].text


def test_an_engine_that_has_work_and_makes_no_step_is_replaced(stack):
    with Watcher(stack) as watcher:
        ready(watcher)
        pid = watcher.pid()
        httpx.post(f"{stack.replicas[0].url}/wedge", json={}, trust_env=False)
        ready(watcher, times=2)
        assert watcher.pid() != pid and not lives(pid)
    assert "has work and finishes no step" in watcher.told("lost")[0].text


def test_values_are_given_back_once_for_each_process(stack):
    HeldValues(stack.run_folder).note("running_request_cap", "r1", 3.0)
    with Watcher(stack) as watcher:
        ready(watcher)
        soon(lambda: watcher.written == [("running_request_cap", "r1", 3.0)])
    with Watcher(stack) as again:
        os.kill(again.pid(), signal.SIGKILL)
        ready(again, times=2)
        soon(lambda: again.written == [("running_request_cap", "r1", 3.0)])
    assert [one.text for one in again.told("restored")] == ["running_request_cap of r1: 3.0"] * 2


def test_a_watcher_that_was_restarted_knows_what_runs(stack):
    with Watcher(stack) as watcher:
        ready(watcher)
        pid = watcher.pid()
        soon(lambda: (stack.run_folder / "r1.served").exists())
    with Watcher(stack) as again:
        threading.Event().wait(0.5)
        assert again.pid() == pid
    assert len(again.told("started")) == len(again.told("ready")) == 1


def test_a_planned_stop_is_not_fought(stack):
    with Watcher(stack) as watcher:
        ready(watcher)
        service = watcher.services["r1"]
        with service.process.held(wait_s=5) as ours:
            assert ours
            os.kill(watcher.pid(), signal.SIGKILL)
            threading.Event().wait(0.5)
            assert watcher.pid() is None
            service.start()
        ready(watcher, times=2)
    assert watcher.told("lost") == []


def test_one_that_never_serves_is_tried_again_at_growing_intervals(stack):
    profile_file(stack, "r1").write("eager")
    with Watcher(stack) as watcher:
        soon(lambda: len(watcher.told("started")) == 3, within_s=15)
    first, second, third = (one.time_s for one in watcher.told("started"))
    assert second - first >= 1.0 and third - second >= 2.0
    assert "ValueError: no such attention backend" in watcher.told("not_ready")[0].text


def test_there_is_one_watcher(stack):
    with Watcher(stack) as watcher:
        ready(watcher)
        with pytest.raises(InputError, match="is watched by another process already"):
            watch(keepers(stack, print, print), stack.run_folder, print, threading.Event())


def test_a_port_of_a_stranger_is_said_once_and_does_not_end_the_watch(stack, tmp_path):
    stranger = ManagedProcess("stranger", tmp_path)
    with Watcher(stack) as watcher:
        ready(watcher)
        service = watcher.services["r1"]
        with service.process.held(wait_s=5):
            service.stop()
            launch = service.launch()
            stranger.start(launch.command, launch.variables())
            soon(lambda: service.trouble() is None)
        soon(lambda: watcher.told("trouble"))
        stranger.stop(5)
        ready(watcher, times=2)
    assert len(watcher.told("trouble")) == 1
    assert "is taken by pid" in watcher.told("trouble")[0].text
