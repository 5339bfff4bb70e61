"""Up, status, down of a stack of small engines."""

import os
import signal
import sys
from pathlib import Path

import httpx
import pytest
from small_stack import lives, small_stack, soon

from stack.errors import InputError, StackError
from stack.local.processes.replica_process import profile_file, replica_service
from stack.local.processes.supervisor import Supervisor

WATCH = (sys.executable, "-c", "import time; time.sleep(60)")


@pytest.fixture
def supervisor(tmp_path):
    one = Supervisor(small_stack(tmp_path), WATCH)
    yield one
    one.down(lambda line: None)


def pids(supervisor):
    return {one.name: one.pid for one in supervisor.status()}


def child_of(url):
    return httpx.get(f"{url}/", trust_env=False).json()["child"]


def test_up_starts_all_and_says_where(supervisor):
    said = []
    supervisor.up(said.append)
    assert sorted(line.split(",")[0] for line in said) == [
        f"{one.name}: {one.url}" for one in supervisor.stack.replicas
    ]
    assert [(one.name, one.trouble) for one in supervisor.status()] == [("r1", None), ("r2", None), ("watch", None)]


def test_up_again_starts_only_what_is_missing(supervisor):
    supervisor.up(lambda line: None)
    before, said = pids(supervisor), []
    os.kill(before["r2"], signal.SIGKILL)
    again = Supervisor(supervisor.stack, WATCH)
    soon(lambda: pids(again)["r2"] is None)
    again.up(said.append)
    after = pids(again)
    assert after["r1"] == before["r1"] and after["r2"] not in (None, before["r2"])
    assert any(line.startswith("r1") and "ran already" in line for line in said)


def test_down_ends_all_with_their_children(supervisor):
    supervisor.up(lambda line: None)
    ended = [*pids(supervisor).values(), *(child_of(one.url) for one in supervisor.stack.replicas)]
    supervisor.down(lambda line: None)
    assert not any(lives(pid) for pid in ended)
    assert {one.trouble for one in supervisor.status()} == {f"{name} does not run" for name in ("r1", "r2", "watch")}


def test_a_port_of_a_stranger_is_refused_before_anything_starts(supervisor, tmp_path):
    stranger = Supervisor(replace_folder(supervisor.stack, tmp_path / "other"), WATCH)
    stranger.up(lambda line: None)
    try:
        pid = pids(stranger)["r1"]
        with pytest.raises(InputError, match=rf"port \d+ of r1 is taken by pid {pid} \(python"):
            supervisor.up(lambda line: None)
        assert set(pids(supervisor).values()) == {None}
    finally:
        stranger.down(lambda line: None)


def replace_folder(stack, folder):
    return stack.model_copy(update={"run_folder": folder})


def test_one_that_dies_at_its_start_is_told_with_its_log(supervisor):
    profile_file(supervisor.stack, "r2").write("eager")
    with pytest.raises(StackError, match=r"r2 ended with code 3 before it served; .*r2\.log ends with:") as error:
        supervisor.up(lambda line: None)
    assert "ValueError: no such attention backend" in str(error.value)
    assert "what was started runs on" in str(error.value)
    assert pids(supervisor)["r1"] is not None


def test_a_missing_program_is_told_before_anything_starts(tmp_path):
    one = Supervisor(small_stack(tmp_path, command=("no-such-vllm",)), WATCH)
    with pytest.raises(InputError, match="no program no-such-vllm"):
        one.up(lambda line: None)
    assert set(pids(one).values()) == {None}


def test_a_run_folder_that_is_a_file_is_refused(supervisor, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"expected a folder at .*file, found a file"):
        Supervisor(replace_folder(supervisor.stack, tmp_path / "file"), WATCH)


def test_a_run_folder_that_cannot_be_made_is_told(supervisor):
    with pytest.raises(InputError, match="/proc/nowhere cannot be made"):
        Supervisor(replace_folder(supervisor.stack, Path("/proc/nowhere")), WATCH).up(lambda line: None)


def test_one_that_does_not_answer_in_time_is_told(tmp_path):
    stack = small_stack(tmp_path, replicas=1, command=WATCH, ready_s=0.3)
    service = replica_service(stack, stack.replicas[0])
    service.start()
    with pytest.raises(StackError, match=r"r1 did not serve within 0\.3 s: .* does not complete a prompt"):
        service.wait_ready()
    service.stop()


def test_arguments_of_engine_replica_profile_and_address_in_this_order(tmp_path):
    stack = small_stack(tmp_path, replicas=1, arguments=("--a",), profiles={"default": ("--c",)}, command=("sh", "x"))
    replica = stack.replicas[0].model_copy(update={"arguments": ("--b",), "environment": {"ONE": "2"}})
    launch = replica_service(stack, replica).launch()
    assert launch.command[1:] == ("x", "--a", "--b", "--c", "--host", "127.0.0.1", "--port", str(replica.port))
    assert launch.variables()["ONE"] == "2"


def test_a_missing_program_is_named(tmp_path):
    stack = small_stack(tmp_path, replicas=1, command=("no-such-vllm",))
    with pytest.raises(InputError, match="no program no-such-vllm: install it"):
        replica_service(stack, stack.replicas[0]).start()


def test_an_unknown_profile_is_refused(tmp_path):
    stack = small_stack(tmp_path)
    with pytest.raises(InputError, match="r1: no execution profile 'fp8_kv'; the configuration has default, eager"):
        profile_file(stack, "r1").write("fp8_kv")
