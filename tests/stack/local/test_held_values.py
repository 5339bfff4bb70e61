"""Written values are remembered whole, by several writers, and given back to who lost them."""

import subprocess
import sys

import pytest

from stack.errors import InputError, RefusedError
from stack.local.processes.held_values import HeldValues, lost_with_engine, lost_with_gateway

NOTE = """
import sys
from pathlib import Path
from stack.local.processes.held_values import HeldValues
for number in range(10):
    HeldValues(Path(sys.argv[1])).note("routing_weight", f"{sys.argv[2]}{number}", 1.0)
"""


@pytest.fixture
def held(tmp_path):
    return HeldValues(tmp_path)


def names(values):
    return [(one.setting, one.target, one.value) for one in values]


def test_the_newest_value_counts(held):
    held.note("routing_weight", "r1", 100.0)
    held.note("running_request_cap", "r1", 8.0)
    held.note("routing_weight", "r1", 50.0)
    assert names(held.read()) == [("running_request_cap", "r1", 8.0), ("routing_weight", "r1", 50.0)]


def test_several_writers_lose_nothing(held, tmp_path):
    writers = [subprocess.Popen([sys.executable, "-c", NOTE, str(tmp_path), name]) for name in ("a", "b")]
    assert [writer.wait(20) for writer in writers] == [0, 0]
    assert len(held.read()) == 20


def test_each_restart_loses_its_own(held):
    held.note("routing_weight", "r1", 50.0)
    held.note("routing_policy", "fleet", "least_connections")
    held.note("running_request_cap", "r1", 8.0)
    held.note("running_request_cap", "r2", 4.0)
    held.note("execution_profile", "r1", "eager")
    assert names(lost_with_engine(held.read(), "r1")) == [("running_request_cap", "r1", 8.0)]
    assert [one[0] for one in names(lost_with_gateway(held.read()))] == ["routing_weight", "routing_policy"]


def test_one_that_is_refused_does_not_keep_the_others_out(held):
    held.note("running_request_cap", "r1", 8.0)
    held.note("tokens_per_step", "r1", 512.0)
    taken = []

    def write(setting, target, value):
        if setting == "running_request_cap":
            raise RefusedError("above --max-num-seqs", 4.0)
        taken.append((setting, target, value))

    restored, failed = held.restore(held.read(), write)
    assert taken == [("tokens_per_step", "r1", 512.0)]
    assert restored == ["tokens_per_step of r1: 512.0"]
    assert failed == ["running_request_cap of r1, 8.0: above --max-num-seqs; the stack now holds 4.0"]


def test_a_damaged_file_is_said(held, tmp_path):
    (tmp_path / "held.json").write_text('{"a": 1')
    with pytest.raises(InputError, match=r"held\.json: not a list of held values"):
        held.read()
