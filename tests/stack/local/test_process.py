"""Processes that outlive their starter: known again, never mistaken, ended with all their children."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from small_stack import environment, lives, soon

from stack.errors import InputError
from stack.local.processes.kernel_process import listener_on
from stack.local.processes.process import ManagedProcess

PARENT = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
print("child", child.pid, flush=True)
time.sleep(60)
"""
STUBBORN = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("child 0", flush=True)
time.sleep(60)
"""

LISTENER = """
import socket, time
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
time.sleep(60)
"""


@pytest.fixture
def started(tmp_path):
    process = ManagedProcess("one", tmp_path)
    yield lambda program: (process, process.start((sys.executable, "-c", program), environment()))
    process.stop(0.1)


def child_of(process):
    said = re.compile(r"^child (\d+)$", re.MULTILINE)
    soon(lambda: said.search(process.log.read_text()))
    return int(said.findall(process.log.read_text())[-1])


def test_it_is_known_again_by_another_object(started, tmp_path):
    _, running = started(PARENT)
    again = ManagedProcess("one", tmp_path)
    assert again.running() == running
    assert again.start(("/bin/false",), environment()) == running


def test_stop_ends_its_children_too(started):
    process, running = started(PARENT)
    child = child_of(process)
    assert process.stop(5.0)
    assert not lives(running.identity.pid)
    soon(lambda: not lives(child))
    assert process.running() is None and process.record() is None


def test_children_of_a_killed_leader_do_not_survive_the_next_start(started):
    process, running = started(PARENT)
    child = child_of(process)
    os.kill(running.identity.pid, signal.SIGKILL)
    soon(lambda: process.running() is None)
    assert lives(child)
    assert process.ending() == "was ended by SIGKILL"
    process.start((sys.executable, "-c", PARENT), environment())
    assert not lives(child)


def test_one_that_ignores_the_first_signal_is_killed(started):
    process, running = started(STUBBORN)
    child_of(process)
    assert not process.stop(0.2)
    assert not lives(running.identity.pid)


def test_a_pid_that_was_given_to_another_is_not_ours(started, tmp_path):
    _, running = started(PARENT)
    stranger = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)
    try:
        pid_file = tmp_path / "two.pid"
        document = json.loads((tmp_path / "one.pid").read_text())
        document["identity"] |= {"pid": stranger.pid, "start_ticks": running.identity.start_ticks - 1}
        pid_file.write_text(json.dumps(document))
        other = ManagedProcess("two", tmp_path)
        assert other.running() is None
        assert other.stop(0.1)
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_how_it_ended_and_what_it_said_last(started):
    process, _ = started("print('no such model'); raise SystemExit(7)")
    soon(lambda: process.running() is None)
    assert process.ending() == "ended with code 7"
    assert "one.log ends with:\n  no such model" in process.last_lines()


def test_only_what_it_said_since_its_start_counts(started):
    process, _ = started("print('first')")
    soon(lambda: process.running() is None)
    process.start((sys.executable, "-c", "print('second')"), environment())
    soon(lambda: process.running() is None)
    assert "second" in process.last_lines() and "first" not in process.last_lines()


def test_a_program_that_cannot_be_started(tmp_path):
    with pytest.raises(InputError, match="one: /no/such/program cannot be started: No such file"):
        ManagedProcess("one", tmp_path).start(("/no/such/program",), environment())


def test_a_damaged_pid_file_is_said(tmp_path):
    (tmp_path / "one.pid").write_text("{}")
    with pytest.raises(InputError, match=r"one\.pid: expected what was started as one"):
        ManagedProcess("one", tmp_path).running()


def test_who_holds_it_keeps_others_out(tmp_path):
    holds, done = threading.Event(), threading.Event()

    def hold():
        with ManagedProcess("one", tmp_path).held() as ours:
            assert ours
            holds.set()
            done.wait(10)

    thread = threading.Thread(target=hold)
    thread.start()
    holds.wait(10)
    with ManagedProcess("one", tmp_path).held() as ours:
        assert not ours
    done.set()
    thread.join()
    with ManagedProcess("one", tmp_path).held() as ours:
        assert ours


def test_who_listens_on_a_port_is_named():
    process = subprocess.Popen([sys.executable, "-c", LISTENER], stdout=subprocess.PIPE, text=True)
    try:
        port = int(process.stdout.readline())
        assert listener_on(port).startswith(f"pid {process.pid} (")
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    assert listener_on(port) is None


def files_of(pid):
    """What a process holds open; it may open and close others while it is looked at."""
    found = set()
    for handle in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            found.add(str(handle.readlink()))
    return found


def test_it_does_not_keep_a_lock_that_we_were_started_under(started, tmp_path):
    with (tmp_path / "lock").open("w") as file:
        os.set_inheritable(file.fileno(), True)
        _, running = started(PARENT)
        open_files = files_of(running.identity.pid)
    assert str(tmp_path / "one.log") in open_files
    assert str(tmp_path / "lock") not in open_files
