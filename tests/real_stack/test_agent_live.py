"""The loop on the real stack in auto mode: what it finds, does, keeps, refuses and undoes."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from live import Live, Say, cap_change
from traffic import users

from agent.session import Session
from agent.settings import Settings
from agent.wiring import live_session
from evals.real_cpu.load import running
from evals.real_cpu.scenario import random_load
from harness.approval import Approve
from harness.journal.record import Record, State
from stack.snapshot import Signal

pytestmark = pytest.mark.real_stack

OVERLOAD_RATIO = 1.5
"""Arrivals over what is served: enough to hurt, and a queue that a higher cap can work off within the test."""
PROBE_S = 20.0
FIGURES = (Signal.TTFT_MEAN_S, Signal.E2E_MEAN_S, Signal.ITL_MEAN_S, Signal.WAITING, Signal.FINISHED)


def settings_of(live: Live, folder: Path, **given: object) -> Settings:
    """With a journal of its own: to another test's, what was reset in between is drift."""
    return Settings.load(live.file, **{"mode": "auto", "store_path": folder / "journal.db"} | given)


def figures(session: Session) -> str:
    snapshot = session.cycle().snapshot
    shown = {signal.value: snapshot.value(signal) for signal in FIGURES}
    return ", ".join(f"{name} {value:.3g}" for name, value in shown.items() if value is not None)


def cycle_until(session: Session, seconds: float, condition: Callable[[], bool]) -> None:
    until_s = time.monotonic() + seconds
    while time.monotonic() < until_s and not condition():
        session.cycle()


def ended(session: Session, state: State) -> list[Record]:
    return [record for record in session.records_since_start() if record.state is state]


def served_per_s(live: Live) -> float:
    """Requests that the stack can serve as it is set now, on this machine."""
    with users(live.url, 4, prompt=(72, 120), output=(36, 60)) as traffic:
        time.sleep(PROBE_S)
        return len(traffic.answers) / PROBE_S


def test_a_cap_that_is_too_small_is_found_raised_and_kept_on_measured_effect(live: Live, tmp_path: Path, say: Say):
    for name in live.names:
        live.control.write("running_request_cap", name, 1.0)
    load = random_load(OVERLOAD_RATIO * served_per_s(live), 96, 48)
    with (
        running("cap", [load], live.configuration, 900, tmp_path, dict(os.environ, OMP_NUM_THREADS="1")),
        live_session(settings_of(live, tmp_path)) as session,
    ):
        cycle_until(session, 60, lambda: session.elapsed_s > 55)
        before = figures(session)
        cycle_until(session, 480, lambda: bool(ended(session, State.KEPT)))
        after = figures(session)
        kept = ended(session, State.KEPT)
        session.leave("the test is over")
    say(f"before: {before}\nafter: {after}")
    assert kept, [(r.state, r.action.setting, r.end_reason) for r in session.records_since_start()]
    assert kept[0].action.setting == "running_request_cap"
    assert kept[0].action.after > 1.0
    assert kept[0].verification is not None


def test_with_kv_exhausted_the_cap_is_never_raised(live: Live, tmp_path: Path, say: Say):
    for name in live.names:
        live.control.write("usable_kv_blocks_ratio", name, 0.13)
    with (
        users(live.url, 26, prompt=(260, 320), output=(140, 200)),
        live_session(settings_of(live, tmp_path)) as session,
    ):
        cycle_until(session, 150, lambda: session.elapsed_s > 140)
        snapshot = session.cycle().snapshot
        session.leave("the test is over")
        records = session.records_since_start()
        for name in live.names:  # what waits now is then answered sooner
            live.control.write("usable_kv_blocks_ratio", name, 1.0)
    pressed = max(fact.peak or 0.0 for name in live.names if (fact := snapshot.fact(Signal.KV_USAGE_RATIO, name)))
    say(f"KV use peaked at {pressed:.0%}; changes: {[(r.action.setting, r.action.after, r.state) for r in records]}")
    assert pressed > 0.9
    raised = [r for r in records if r.action.setting == "running_request_cap" and r.action.after > r.action.before]
    assert not [r for r in raised if r.permit is not None]


def lenient(live: Live, folder: Path) -> Path:
    """The stack's policy, but a limit may be set far below what runs: else nothing this bad gets past the gate."""
    shipped = Settings.load(live.file).policy_path
    assert shipped is not None
    changed = folder / "lenient.toml"
    words = "\n[health]\nlimit_left_min_ratio = 0.01\nlimit_left_min_requests = 1\n"
    changed.write_text(shipped.read_text(encoding="utf-8") + words, encoding="utf-8")
    return changed


def test_a_bad_change_is_undone(live: Live, tmp_path: Path, say: Say):
    settings = settings_of(live, tmp_path, mode="approve", policy_path=lenient(live, tmp_path))
    with users(live.url, 10, output=(30, 50)) as traffic, live_session(settings) as session:
        cycle_until(session, 120, lambda: session.elapsed_s > 95)
        held = live.control.read("running_request_cap", "r1")
        before = figures(session)
        proposed = session.propose(cap_change("r1", held, 1.0))
        assert proposed.approval_id is not None, proposed.verdict
        session.decide(proposed.approval_id, Approve("operator", proposed.digest))
        session.cycle()
        assert live.control.read("running_request_cap", "r1") == 1.0
        cycle_until(session, 400, lambda: bool(ended(session, State.ROLLED_BACK)))
        records = session.records_since_start()
        during = figures(session)
        session.leave("the test is over")
    say(f"before: {before}\nat its end: {during}\n{records[0].end_reason}")
    assert ended(session, State.ROLLED_BACK), [(r.state, r.end_reason) for r in records]
    assert "session ended" not in records[0].end_reason
    assert live.control.read("running_request_cap", "r1") == held
    assert not traffic.failed, traffic.failed[:3]
