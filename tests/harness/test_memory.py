import logging
from dataclasses import replace

import pytest
from scripted_stack import weight_action

from harness.journal.journal import Journal
from harness.journal.record import Record, State
from harness.journal.store import open_store
from harness.memory import DAY_S, HALF_LIFE_S, Environment, Memory
from harness.mode import Mode
from harness.verdict import RuleResult, Ruling, Verdict

HERE = Environment(
    model="llama-8b",
    gpu="h100",
    engine_version="0.32.0",
    replicas=4,
    requests_per_s=20.0,
    prompt_tokens=1000.0,
    output_tokens=100.0,
)
DENY = Verdict((RuleResult("step_size", Ruling.DENY, "too long"),))


@pytest.fixture
def world():
    store = open_store()
    yield Journal(store), Memory(store)
    store.close()


def ended(journal: Journal, cause: str = "slow_replica", now_s: float = 0.0) -> Record:
    record = journal.propose(replace(weight_action(), cause=cause), DENY, mode=Mode.AUTO, now_s=now_s)
    assert record.state is State.DENIED
    return record


def test_an_episode_counts_less_the_older_it_is(world):
    journal, memory = world
    memory.remember(ended(journal, now_s=0.0), HERE)
    memory.remember(ended(journal, now_s=HALF_LIFE_S), HERE)
    recalled = memory.recall(HERE, now_s=HALF_LIFE_S)
    assert [r.weight for r in recalled] == [pytest.approx(1.0), pytest.approx(0.5)]
    assert recalled[0].episode.environment == HERE and recalled[0].episode.setting == "routing_weight"


def test_an_episode_of_another_world_is_dropped_with_a_log_line(world, caplog):
    journal, memory = world
    memory.remember(ended(journal), replace(HERE, model="mixtral"))
    memory.remember(ended(journal), replace(HERE, prompt_tokens=1100.0))
    with caplog.at_level(logging.INFO, "harness.memory"):
        recalled = memory.recall(HERE, now_s=DAY_S)
    assert [r.episode.environment.prompt_tokens for r in recalled] == [1100.0]
    assert "too different" in caplog.text


@pytest.mark.parametrize(
    ("other", "similar"),
    [
        (HERE, True),
        (replace(HERE, engine_version="0.31.0"), True),
        (replace(HERE, requests_per_s=40.0, replicas=8), True),
        (replace(HERE, requests_per_s=None), True),
        (replace(HERE, gpu="a10", engine_version="0.8"), True),
        (replace(HERE, model="other"), False),
        (replace(HERE, prompt_tokens=50_000.0), False),
    ],
)
def test_similarity(other: Environment, similar: bool):
    assert (HERE.similarity(other) >= 0.3) is similar
    assert HERE.similarity(other) == pytest.approx(other.similarity(HERE))


def test_remembering_twice_changes_nothing_and_filters_work(world):
    journal, memory = world
    record = ended(journal)
    memory.remember(record, HERE)
    memory.remember(record, HERE)
    memory.remember(ended(journal, "cap_too_small"), HERE)
    assert len(memory.recall(HERE, now_s=1.0)) == 2
    assert [r.episode.cause for r in memory.recall(HERE, now_s=1.0, cause="slow_replica")] == ["slow_replica"]
    assert memory.recall(HERE, now_s=1.0, setting="tokens_per_step") == ()


def test_an_open_action_is_no_episode(world):
    journal, memory = world
    allow = Verdict((RuleResult("authority", Ruling.ALLOW, "auto"),))
    with pytest.raises(ValueError, match="approved"):
        memory.remember(journal.propose(weight_action(), allow, mode=Mode.AUTO, now_s=0.0), HERE)
