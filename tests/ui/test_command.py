"""The command line as a user meets it: one process a case."""

import json
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import httpx
import pytest

DATA = Path(__file__).parents[1] / "data"
COMMAND = [str(Path(sys.executable).with_name("flashvector"))]


def flashvector(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments],
        capture_output=True,
        text=True,
        timeout=240,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        check=False,
    )


@pytest.mark.parametrize(
    "command",
    [[], ["demo"], ["stop"], ["journal", "export"], ["diagnose"], ["run"], ["chat"], ["doctor"], ["simulate", "serve"]],
)
def test_help_names_what_a_command_does(command):
    result = flashvector(*command, "--help")
    assert result.returncode == 0
    assert "Usage" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["diagnose", "absent.prom"], "absent.prom"),
        (["run", "--traffic", "absent.csv"], "absent.csv"),
        (["run", "--fault", "no_such_fault@10"], "no_such_fault"),
        (["run", "--fault", "slow_replica@soon"], "soon"),
        (["run", "--planner", "astrology"], "astrology"),
        (["run", "--model", "no-such-model"], "no-such-model"),
        (["run", "--gpu", "abacus"], "abacus"),
        (["run", "--kv-blocks", "0"], "kv_blocks must be 1 to"),
        (["run", "--kv-blocks", "1000000000"], "not 1000000000"),
        (["run", "--json", "absent_folder/out.json"], "absent_folder"),
        (["chat", "-c", "absent.toml"], "absent.toml"),
    ],
)
def test_bad_input_is_one_line_naming_it_and_exit_code_2(arguments, named, tmp_path):
    result = flashvector(*arguments, cwd=tmp_path)
    assert result.returncode == 2
    assert named in result.stderr
    assert "Traceback" not in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_a_stack_that_does_not_answer_is_a_failure_not_bad_input():
    result = flashvector("diagnose", "http://127.0.0.1:9/metrics")
    assert result.returncode == 1
    assert "127.0.0.1:9" in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_diagnose_prints_the_documented_object():
    result = flashvector(
        "diagnose", "--json", str(DATA / "kvfull_preempt_drain.prom"), str(DATA / "kvfull_preempt.prom")
    )
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert {"healthy", "findings", "missing", "window_s"} <= set(report)
    assert report["healthy"] is False
    assert report["window_s"] is None
    first = report["findings"][0]
    assert first["layer"] == "cache"
    assert {"layer", "cause", "severity", "confidence", "tunable", "target", "evidence"} <= set(first)
    raises_cap = [a for a in report["actions"] if a["setting"] == "running_request_cap" and a["to"] > a["from"]]
    assert raises_cap == []


def test_diagnose_in_words_says_the_layer_first():
    result = flashvector("diagnose", str(DATA / "kvfull_preempt.prom"), str(DATA / "saturated_queue.prom"))
    assert result.returncode == 0, result.stderr
    assert "1. batching" in result.stdout
    claims = [line.strip() for line in result.stdout.splitlines() if line.startswith("   ")]
    assert all(result.stdout.count(claim) == 1 for claim in claims)


def test_run_writes_the_same_result_for_the_same_seed(tmp_path):
    arguments = ["run", "--traffic", "steady", "--load", "0.4", "--minutes", "6", "--mode", "auto", "--seed", "3"]
    results = []
    for name in ("one.json", "two.json"):
        result = flashvector(*arguments, "--json", str(tmp_path / name))
        assert result.returncode == 0, result.stderr
        results.append((tmp_path / name).read_text())
    assert results[0] == results[1]
    report = json.loads(results[0])
    assert report["seed"] == 3
    assert report["episodes"] == []
    assert report["metrics"]["slo_share"] > 0.95


def test_a_run_tells_what_it_saw_and_what_it_would_have_done(tmp_path):
    options = ["--load", "0.6", "--fault", "slow_replica@240", "--minutes", "11", "--mode", "shadow", "--seed", "1"]
    result = flashvector("run", *options, "--json", str(tmp_path / "out.json"))
    assert result.returncode == 0, result.stderr
    report = json.loads((tmp_path / "out.json").read_text())
    assert report["episodes"] == []
    assert {one["state"] for one in report["proposals"]} == {"shadowed"}
    assert report["proposals"][0]["layer"] == "routing"
    assert "slow_replica" in {one["cause"] for one in report["seen"]}
    assert "slow_replica" in result.stderr and "decided in shadow" in result.stderr


def test_interrupting_a_run_undoes_reports_and_exits_with_130(tmp_path):
    out = tmp_path / "out.json"
    options = ["--load", "0.6", "--fault", "slow_replica@240", "--minutes", "1400", "--json", str(out)]
    store = tmp_path / "store.db"
    with subprocess.Popen([*COMMAND, "run", *options, "--store", str(store)], stderr=subprocess.PIPE) as run:
        try:
            wait_until(lambda: states(store))
            run.send_signal(signal.SIGINT)
            _, told = run.communicate(timeout=60)
        finally:
            run.kill()
    assert run.returncode == 130
    assert b"rolled_back" in told and b"Interrupted" in told and b"Traceback" not in told
    assert not states(store) & {"approved", "armed", "applied", "settling", "probation", "rolling_back"}
    assert {episode["outcome"] for episode in json.loads(out.read_text())["episodes"]} == {"rolled_back"}


@pytest.mark.parametrize("place", ["/proc/y", "."])
def test_an_unwritable_place_for_the_result_is_said_before_the_run(place, tmp_path):
    result = flashvector("run", "--minutes", "600", "--json", place, cwd=tmp_path)
    assert result.returncode == 2
    assert place in result.stderr and "cannot be written" in result.stderr


def test_doctor_says_what_works(tmp_path):
    result = flashvector("doctor", "--json", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert {check["name"] for check in json.loads(result.stdout)["checks"]} >= {"policy", "store", "planner"}


def test_chat_without_an_llm_answers_and_says_who_speaks(tmp_path):
    story = ("--fault", "slow_replica@240", "--after", "8")
    result = flashvector("chat", *story, "--ask", "why is P99 high?", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "search" in result.stdout
    assert "routing" in result.stdout


def test_the_simulated_stack_answers_over_http_and_can_be_diagnosed(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ["--port", str(port), "--fault", "slow_replica@60", "--speed", "60"]
    server = subprocess.Popen([*COMMAND, "simulate", "serve", *options], cwd=tmp_path, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}/metrics"
    try:
        wait_for(url)
        httpx.get(url, timeout=30)
        result = flashvector("diagnose", "--json", "--interval", "2", url)
    finally:
        server.terminate()
        server.wait(20)
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert report["fleet"]["arrived_requests"] > 0
    assert report["findings"][0]["cause"] == "slow_replica"


def states(store: Path) -> set[str]:
    """States of the journal's actions; none before its tables exist."""
    if not store.exists():
        return set()
    with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True, timeout=30)) as journal:
        try:
            return {state for (state,) in journal.execute("SELECT state FROM action")}
        except sqlite3.OperationalError:
            return set()


def wait_until(condition: Callable[[], object]) -> None:
    for _ in range(1200):
        if condition():
            return
        time.sleep(0.1)
    raise AssertionError("it did not happen within two minutes")


def wait_for(url: str) -> None:
    for _ in range(600):
        try:
            httpx.get(url, timeout=30)
            return
        except httpx.TransportError:
            time.sleep(0.1)
    raise AssertionError(f"{url} did not answer")
