"""Replicas of the real stack that are restarted, and one that is killed."""

import json
import os
import signal
import time
from pathlib import Path

import pytest
from live import Live, Say, cap_change, within
from traffic import users

from agent.settings import Settings
from agent.wiring import live_session
from harness.approval import Approve
from harness.journal.record import State
from stack.local.gateway.held import held
from stack.local.processes.kernel_process import members
from stack.local.processes.restart import restart

pytestmark = pytest.mark.real_stack


def events(live: Live) -> list[dict[str, str]]:
    lines = (live.configuration.run_folder / "events.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def server_of(live: Live, name: str) -> int:
    """The replica's first process, whose session all its others are in."""
    pid = next(one for one in live.supervisor.status() if one.name == name).pid
    assert pid
    return pid


def engine_core_of(server: int) -> int:
    """The process that holds the scheduler."""
    lines = {one.pid: Path(f"/proc/{one.pid}/cmdline").read_text() for one in members(server)}
    (found,) = [pid for pid, line in lines.items() if "EngineCor" in line]
    return found


def test_a_rolling_restart_of_both_replicas_fails_no_request_and_keeps_their_limits(live: Live, say: Say):
    live.control.write("running_request_cap", "r1", 12.0)
    with users(live.url, 6) as traffic:
        time.sleep(3.0)
        begun_s = time.time()
        done = restart(live.configuration, (), None)
        took_s = time.time() - begun_s
        time.sleep(3.0)
    say(f"{len(traffic.answers)} requests, 0 failed, in {took_s:.0f} s: {done}")
    assert [one.replica for one in done] == ["r1", "r2"]
    assert [one.undrained for one in done] == [0, 0]
    assert not traffic.failed, traffic.failed[:3]
    assert live.control.read("running_request_cap", "r1") == 12.0


def test_a_killed_replica_is_out_is_told_and_comes_back_and_a_change_in_flight_is_resolved(
    live: Live, tmp_path: Path, say: Say
):
    settings = Settings.load(live.file, mode="approve", store_path=tmp_path / "journal.db")
    live.control.write("long_prefill_threshold_tokens", "r2", 256.0)
    with users(live.url, 6) as traffic, live_session(settings) as session:
        within(90, "there is history", lambda: not session.cycle().blind and session.elapsed_s > 65, poll_s=0.0)
        before = live.control.read("running_request_cap", "r2")
        proposed = session.propose(cap_change("r2", before, 24.0))
        assert proposed.approval_id is not None, proposed.verdict
        session.decide(proposed.approval_id, Approve("operator", proposed.digest))
        session.cycle()
        assert live.control.read("running_request_cap", "r2") == 24.0
        server = server_of(live, "r2")
        os.kill(engine_core_of(server), signal.SIGKILL)
        killed_s = time.time()
        out_s = within(10, "r2 is out of rotation", lambda: held(live.configuration).status("r2").startswith("DOWN"))
        records = []
        while time.time() < killed_s + 240 and not records:
            session.cycle()
            records = [r for r in session.records() if r.id == proposed.approval_id and not r.is_open]
        back_s = within(150, "r2 is back", lambda: held(live.configuration).status("r2").startswith("UP"))
        after = live.control.read("running_request_cap", "r2")
        within(30, "other values are back", lambda: live.control.read("long_prefill_threshold_tokens", "r2") == 256.0)
    told = [one for one in events(live) if one["target"] == "r2" and one["time_s"] >= killed_s]
    say(f"out after {out_s:.1f} s; {told[0]['text'][:80]}; the change: {records[0].state}, {records[0].end_reason}")
    assert told[0]["what"] == "lost"
    assert records[0].state is State.ROLLED_BACK, records[0]
    assert after == before
    assert not members(server)
    lost = traffic.failed
    assert len(lost) <= 12, f"more than what was in flight on r2 failed: {len(lost)}"
    assert all(one.begun_s < killed_s + 10 for one in lost), lost
    assert back_s < 150
