"""`flashvector stop` and `unfreeze` against a session of another process, and against none."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner

from harness.journal.journal import Journal
from harness.journal.record import State
from harness.journal.store import open_store
from stack.errors import InputError
from ui.command import application

SESSION = Path(__file__).with_name("stoppable_session.py")
FILE = """
store_path = "{folder}/journal.db"
[stack]
name = "small"
run_folder = "{folder}/run"
[stack.engine]
command = ["vllm"]
model = "small"
[[stack.replicas]]
name = "r1"
url = "http://127.0.0.1:9"
[stack.gateway]
url = "http://127.0.0.1:10"
metrics_url = "http://127.0.0.1:11"
managed = false
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "stack.toml"
    path.write_text(FILE.format(folder=tmp_path))
    return path


@contextmanager
def session(config: Path, what: str = "sleeps") -> Iterator[subprocess.Popen[str]]:
    """A process with a change in flight that sleeps between two cycles, or hangs after its write."""
    command = [sys.executable, str(SESSION), str(config.with_name("journal.db")), what]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == "changed\n"
            yield process
        finally:
            process.kill()


def said(command: str, *arguments: object):
    return CliRunner().invoke(application([command]), [command, *map(str, arguments)])


def journal(config: Path) -> Journal:
    return Journal(open_store(config.with_name("journal.db")), stack="small")


def test_a_running_session_undoes_what_is_in_flight_and_says_so(config: Path):
    with session(config) as running:
        stopped = said("stop", "-c", config, "--by", "olga", "--json")
        assert stopped.exit_code == 0, stopped.output
        found = json.loads(stopped.output)
        assert found["answered"] and found["session"] and found["seconds"] < 5 and found["in_flight"] == []
        (undone,) = found["undone"]
        assert (undone["setting"], undone["state"], undone["holds"]) == ("routing_weight", "rolled_back", 100)
        assert undone["reason"] == "stopped by olga"
        assert running.communicate("end\n")[0] == "holds 100\n"
    with closing(journal(config)._store):
        assert journal(config).frozen() == "stopped by olga"


def test_text_names_the_action_and_a_second_stop_finds_nothing(config: Path):
    with session(config):
        first = said("stop", "-c", config, "--reason", "a leak")
        assert "all changes are halted; the running session answered after" in first.output
        assert "rolled back: action 1, routing_weight on r0 holds 100 (stopped by " in first.output
        second = said("stop", "-c", config)
        assert second.exit_code == 0 and "Nothing was in flight." in second.output


def test_an_envelope_is_taken_back_and_told(config: Path):
    with session(config, "envelope") as running:
        stopped = said("stop", "-c", config)
        assert stopped.exit_code == 0 and "Nothing was in flight" not in stopped.output
        assert "rolled back after 1 move(s)" in stopped.output
        assert running.communicate("end\n")[0] == "holds 100\n"


def test_an_envelope_of_a_session_that_died_is_told_and_is_no_success(config: Path):
    with session(config, "envelope") as running:
        running.kill()
        running.wait()
        stopped = said("stop", "-c", config, "--json")
    assert stopped.exit_code == 1
    found = json.loads(stopped.output)["envelope"]
    assert found["state"] == "open" and found["places"][0]["last"] == 90


@pytest.mark.parametrize("command", [("stop",), ("unfreeze", "--reason", "x")])
def test_a_journal_that_is_not_there_is_not_made(config: Path, command: tuple[str, ...]):
    for arguments in (("-c", config), ("-c", config, "--store", config.with_name("typo.db"))):
        refused = said(*command, *arguments)
        assert isinstance(refused.exception, InputError) and "found no file" in str(refused.exception)
    assert list(config.parent.glob("*.db")) == []


def test_without_a_session_the_freeze_waits_for_the_next_start(config: Path):
    journal(config)._store.close()
    nothing = said("stop", "-c", config)
    assert nothing.exit_code == 0 and "no session is running. Changes are frozen" in nothing.output
    assert said("unfreeze", "-c", config, "--reason", "a drill").exit_code == 0
    with session(config):
        pass
    left = said("stop", "-c", config)
    assert left.exit_code == 1
    assert "still in flight: action 1, routing_weight on r0: the next session undoes it first" in left.output
    assert json.loads(said("stop", "-c", config, "--json").output)["session"] is False


def test_a_session_that_hangs_is_told_from_one_that_is_not_there(config: Path):
    with session(config, "hangs"):
        stopped = json.loads(said("stop", "-c", config, "--json").output)
        assert not stopped["answered"] and stopped["session"]
        assert [one["state"] for one in stopped["in_flight"]] == [State.ARMED]


def test_unfreeze_needs_a_reason_and_says_what_the_freeze_was_for(config: Path):
    journal(config)._store.close()
    assert "were not frozen" in said("unfreeze", "-c", config, "--reason", "nothing").output
    said("stop", "-c", config, "--by", "olga", "--reason", "a leak")
    assert said("unfreeze", "-c", config).exit_code == 2
    blank = said("unfreeze", "-c", config, "--reason", " ")
    assert isinstance(blank.exception, InputError) and "--reason" in str(blank.exception)
    lifted = said("unfreeze", "-c", config, "--reason", "repaired", "--by", "max")
    assert lifted.exit_code == 0 and "frozen because: stopped by olga: a leak" in lifted.output
    with closing(journal(config)._store):
        last = journal(config).events()[-1]
        assert (last.what, last.numbers) == ("unfreeze", {"by": "max", "reason": "repaired"})


def test_a_configuration_without_a_stack_or_a_store_is_named(tmp_path: Path, config: Path):
    config.write_text(config.read_text().replace("store_path", "# store_path"))
    without = said("stop", "-c", config)
    assert isinstance(without.exception, InputError) and "expected store_path" in str(without.exception)
    empty = tmp_path / "empty.toml"
    empty.write_text("")
    none = said("stop", "-c", empty)
    assert isinstance(none.exception, InputError) and "table [stack]" in str(none.exception)
