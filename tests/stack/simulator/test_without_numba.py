"""The simulator on a machine that has no numba."""

import subprocess
import sys

import pytest

from stack.errors import InputError
from stack.simulator.engine import kernels as module
from stack.simulator.engine.kernels import kernels

RUN = """
import sys
sys.modules["numba"] = None  # as if it were not installed
from ui.command import main
main()
"""


def test_compiled_kernels_are_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "numba", None)
    assert not module.available()
    with pytest.raises(InputError, match="numba is not installed"):
        kernels(True)


def test_a_run_says_so_in_one_line_and_goes_on():
    arguments = ["run", "--minutes", "1", "--load", "0.1", "--replicas", "1"]
    done = subprocess.run(
        [sys.executable, "-c", RUN, *arguments], capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "No change was made." in done.stderr
    assert [line for line in done.stderr.splitlines() if "numba" in line] == [
        f"{module.WITHOUT_NUMBA}; plain Python takes over"
    ]
