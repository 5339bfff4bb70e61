"""A hundred thousand hostile plans, judged by the policy as it is written down a second time: no breach."""

from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from multiprocessing import get_context
from pathlib import Path

import pytest
from siege import ENABLED, Siege
from written_policy import WrittenPolicy

from harness.gate import check as gate
from harness.journal.store import open_store

WORLDS = (8_000,) * 5 + (2_500,) * 24
"""Plans per world, 100,000 in all; the long ones last more than a day, which its budget needs."""
DURABLE_PLANS = 100
BUSY_FIRST = (5, 6, 1, 0, 2, 3, 4, 7)
"""Worlds in the order of how much gets through in them: in some, a few changes in an hour are all."""


def besieged(seed: int, plans: int) -> tuple[int, WrittenPolicy]:
    """How many plans were made against one world, and what the judge saw."""
    with closing(open_store(None)) as store:
        siege = Siege(seed, store)
        siege.run(plans)
        return siege.made, siege.judge


def test_a_hundred_thousand_hostile_plans_breach_nothing():
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as processes:
        made, judges = zip(*processes.map(besieged, range(len(WORLDS)), WORLDS), strict=True)
    for seed, judge in enumerate(judges):
        assert judge.breaches == [], f"seed {seed}: {judge.breaches[0]}"
    changes = [change for judge in judges for change in judge.changes]
    assert sum(made) >= sum(WORLDS) == 100_000
    # the attack is worth something only if much gets through that is allowed, of every kind
    assert {change.setting for change in changes} == set(ENABLED)
    assert {"kept", "undone", "hard stop"} <= {change.ending for change in changes}
    assert len(changes) >= 300


def breaches_of(siege: Siege) -> list[str]:
    siege.run(2_500)
    return siege.judge.breaches


@pytest.mark.parametrize(
    "missing", ["step_size", "sane_clock", "fresh_snapshot", "enough_left", "blast_radius", "memory_headroom"]
)
def test_the_judge_sees_what_a_missing_rule_lets_through(monkeypatch, missing: str):
    monkeypatch.setattr(gate, "RULES", tuple(rule for rule in gate.RULES if rule.__name__ != missing))
    sieges = (Siege(seed, open_store(None)) for seed in BUSY_FIRST)
    assert any(breaches_of(siege) for siege in sieges)


def test_with_every_proposal_in_a_durable_journal_too(tmp_path: Path):
    store = open_store(tmp_path / "journal.db")
    siege = Siege(len(WORLDS), store, whole=True)
    siege.run(DURABLE_PLANS)
    assert siege.judge.breaches == []
    assert len(siege.journal.records()) >= DURABLE_PLANS / 2
    store.close()
