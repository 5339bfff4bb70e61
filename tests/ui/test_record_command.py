"""`flashvector record` and `doctor -c` as a user meets them, against a stack of captured pages."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "stack" / "local"))
from live_pages import LivePages, live_pages, table_of

COMMAND = [str(Path(sys.executable).with_name("flashvector"))]


@pytest.fixture
def pages(tmp_path) -> Iterator[LivePages]:
    with live_pages(tmp_path) as served:
        text = table_of("run", served.r1.url, served.r2.url, served.gateway.url)
        (tmp_path / "stack.toml").write_text(text)
        yield served


def flashvector(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=240, cwd=folder, check=False)


def test_ctrl_c_ends_a_recording_and_keeps_it(pages, tmp_path):
    command = [*COMMAND, "record", "-c", "stack.toml", "out", "--minutes", "30", "--step", "0.5", "--title", "KV full"]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    deadline_s = time.monotonic() + 120.0
    while pages.r1.calls.get("/metrics", 0) < 4:
        assert time.monotonic() < deadline_s
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=120)[1]
    assert process.returncode == 0, said
    assert "out:" in said
    assert 'title = "KV full"' in (tmp_path / "out" / "incident.toml").read_text()
    diagnosed = flashvector(tmp_path, "diagnose", "out")
    assert diagnosed.returncode == 0, diagnosed.stderr
    assert "kv_pressure on r1" in diagnosed.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "named"),
    [
        (["record", "-c", "stack.toml", "out", "--last", "5"], 2, "stack.history"),
        (["record", "-c", "stack.toml", "taken"], 2, "already"),
    ],
)
def test_what_cannot_be_recorded_is_one_line(pages, tmp_path, arguments, code, named):
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "incident.toml").write_text("")
    result = flashvector(tmp_path, *arguments)
    assert result.returncode == code
    assert named in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_the_doctor_tells_the_stacks_contract(pages, tmp_path):
    result = flashvector(tmp_path, "doctor", "-c", "stack.toml")
    assert result.returncode == 1
    assert "gateway: HAProxy with servers r1, r2" in result.stdout
    assert "r1: running_request_cap, tokens_per_step" in result.stdout
    assert "r2 device_free_bytes: absent" in result.stdout


def test_a_wrong_stack_table_does_not_show_its_token(tmp_path):
    text = table_of("run", "http://127.0.0.1:1", "http://127.0.0.1:1", "http://127.0.0.1:3")
    (tmp_path / "stack.toml").write_text(
        text.replace('run_folder = "run"', 'run_folder = "run"\nengine_token = "hush"')
    )
    result = flashvector(tmp_path, "doctor", "-c", "stack.toml")
    assert result.returncode == 2
    assert "addresses must differ" in result.stderr
    assert "hush" not in result.stderr
