"""`flashvector simulate bench` as a user meets it."""

import json
import subprocess
import sys
from pathlib import Path

from stack.simulator.engine.kernels import available

COMMAND = [str(Path(sys.executable).with_name("flashvector")), "simulate", "bench"]


def test_the_figures_are_shown_and_written(tmp_path: Path):
    path = tmp_path / "speed.json"
    done = subprocess.run([*COMMAND, "--json", str(path)], capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    result = json.loads(path.read_text())
    figures = result["sim_s_per_cpu_s"]
    assert available() == ("numba_20" in figures)
    assert f"{figures['python_20']:,.0f}" in done.stdout
    assert figures["python_20"] > figures["python_20_step_by_step"] > 1
    assert 50 < result["rss_mb"] < 1_000


def test_a_folder_that_does_not_exist_is_told_before_the_work():
    done = subprocess.run([*COMMAND, "--json", "absent/speed.json"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "absent" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
