"""The loop in shadow mode: what it decides is judged afterwards, on simulated and on replayed traffic."""

from pathlib import Path

import pytest
from sqlalchemy import select

from agent.settings import Settings
from agent.wiring import _desk, recorded_session, simulated_session
from harness.journal.journal import Journal
from harness.journal.record import State
from harness.journal.schema import SHADOW_SCORE
from harness.journal.store import open_store
from harness.mode import Mode
from harness.shadow.overview import overview
from harness.shadow.record import ShadowRecord
from harness.shadow.score import Hindsight, Played, Score
from stack.incident import Incident, Truth, write_incident
from stack.recorded import replay_of
from stack.recording import write_recording
from stack.simulator.fleet import FleetSpec
from stack.simulator.load.generated import steady
from stack.simulator.simulation import Simulation

STACK = """
[stack]
name = "paris"
run_folder = "/nowhere"
[stack.engine]
command = ["vllm"]
model = "llama"
[[stack.replicas]]
name = "replica-0"
url = "http://127.0.0.1:81"
[[stack.replicas]]
name = "replica-1"
url = "http://127.0.0.1:82"
[stack.gateway]
url = "http://127.0.0.1:83"
metrics_url = "http://127.0.0.1:84"
"""
CAP = "running_request_cap"


@pytest.fixture(autouse=True)
def _empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def _stored(path: Path) -> list[dict]:
    store = open_store(path)
    with store.begin() as connection:
        rows = connection.execute(select(SHADOW_SCORE.c.score).order_by(SHADOW_SCORE.c.decided_s)).scalars().all()
    store.close()
    return list(rows)


def test_every_proposal_is_judged_once_its_window_is_over_and_stays_as_it_was(tmp_path):
    path = tmp_path / "journal.db"
    settings = Settings.load(mode=Mode.SHADOW, enabled=("routing_weight", CAP), store_path=path)
    talk = simulated_session(settings, faults=("cap_too_small@330",), minutes=20.0, load=0.5, replicas=3, seed=3)
    proposed_s: dict[int, float] = {}
    while talk.elapsed_s < 11 * 60:
        report = talk.cycle()
        if report.proposal is not None:
            proposed_s[report.proposal.id] = talk.elapsed_s
    assert [record.state for record in talk.records()] == [State.SHADOWED] * len(proposed_s)
    scores = [row for row in _stored(path) if row["action_id"] is not None]
    assert [row["action_id"] for row in scores] == list(proposed_s)[: len(scores)] and scores
    raised = scores[0]["hindsight"]
    assert (scores[0]["setting"], scores[0]["unscored"]) == (CAP, None)
    assert (
        raised["best"] == raised["proposed"]
        and raised["proposed"]["finished_per_s"] > raised["nothing"]["finished_per_s"]
    )
    first, second = list(proposed_s.values())[:2]
    assert second - first >= 120.0, "while a decision is watched no second best is proposed beside it"
    calm = [row for row in _stored(path) if row["setting"] is None and row["hindsight"] is not None]
    assert calm and calm[0]["hindsight"]["tried"] > 1
    assert calm[0]["hindsight"]["proposed"] == calm[0]["hindsight"]["nothing"]


@pytest.mark.parametrize(("mode", "simulated"), [(Mode.AUTO, False), (Mode.APPROVE, False), (Mode.AUTO, True)])
def test_the_gate_is_told_what_the_stacks_own_record_has_earned(recording, tmp_path, mode, simulated):
    store, played = open_store(tmp_path / "journal.db"), Played(0.9, 5.0, 1.0)
    good = Hindsight(played, played, played, None, 3)
    for stack, setting in (("paris", CAP), ("rome", "routing_weight")):
        for place in range(50):
            change = {"setting": setting, "target": "fleet", "before": 4.0, "after": 8.0, "action_id": None}
            score = Score(**change, decided_s=3600.0 * place, planner="search", hindsight=good)
            ShadowRecord(store, stack=stack, planner="search").add(score)
    store.close()
    settings, replay = Settings.load(mode=mode, store_path=tmp_path / "journal.db"), replay_of(recording)
    desk = _desk(
        settings, settings.policy(), replay.reader, replay.control, replay.clock, name="paris", simulated=simulated
    )
    assert desk.executor.history().earned == ({CAP} if mode is Mode.AUTO and not simulated else frozenset())


@pytest.fixture(scope="module")
def recording(tmp_path_factory) -> Path:
    """Nine minutes of a fleet that may run too few requests at once from its beginning."""
    folder = tmp_path_factory.mktemp("incident")
    held = {CAP: {"replica-0": 4.0, "replica-1": 4.0}}
    simulation = Simulation(FleetSpec(replicas=2), steady(16, 600, seed=5), seed=5, settings=held)
    readings = []
    for step in range(1, 115):
        simulation.advance(5.0 * step)
        readings += simulation.readings()
    write_recording(folder, readings, simulation.settings())
    write_incident(folder, Incident(title="t", provenance="simulated", question="why?", truth=Truth()))
    return folder


def test_replayed_traffic_counts_for_the_stack_it_is_from_and_once(recording, tmp_path):
    config, path = tmp_path / "paris.toml", tmp_path / "journal.db"
    config.write_text(STACK)
    settings = Settings.load(config, store_path=path)
    counted = []
    for _ in range(2):
        talk = recorded_session(settings, recording)
        while talk.elapsed_s < 9 * 60:
            talk.cycle()
        store = open_store(path)
        record, journal = ShadowRecord(store, stack="paris", planner="search"), Journal(store, stack="paris")
        assert journal.records() == (), "what was replayed did not happen on the stack"
        counted.append(record.scores())
        found = dict(overview(record, journal, settings.policy()).settings)[CAP]
        store.close()
    raised = [score for score in counted[0] if score.setting == CAP and score.hindsight is not None]
    assert raised and raised[0].hindsight.best_change.setting == CAP
    assert counted[0] == counted[1]
    assert found.standing.scored == len(raised) and not found.standing.passed
