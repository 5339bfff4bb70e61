"""Real processes, really killed."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SWEEP = Path(__file__).with_name("sigkill_sweep.py")


@pytest.mark.parametrize(("helps", "ending"), [(0.7, "kept"), (1.4, "rolled_back")])
def test_a_process_killed_at_any_point_leaves_what_a_restart_resolves(quick_folder: Path, helps: float, ending: str):
    folder = quick_folder / ending
    folder.mkdir()
    command = [sys.executable, str(SWEEP), str(folder), str(helps)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["kills"] > found["points"] > 50
    assert set(found["endings"]) <= {"nothing_done", "rolled_back", ending}
