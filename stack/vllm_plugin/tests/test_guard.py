"""A failure of the plugin's own parts must not reach vLLM's loop."""

import pytest
from flashvector_vllm.steps import CAPACITY, Step, StepRecord


def broken(*_, **__):
    raise RuntimeError("broken on purpose")


def test_a_part_that_raises_before_a_step_leaves_the_engine_on_its_boot_limits(engine, monkeypatch):
    one = engine(blocks=101)
    for _ in range(30):
        one.add(24, 20)
    one.set(running_request_cap=4, usable_kv_blocks=60)
    one.steps(3)
    with monkeypatch.context() as patch:
        patch.setattr("flashvector_vllm.levers.Levers._write_cap", broken)
        one.steps(2)
    state = one.tuner.state()
    assert state["degraded"] and not state["settled"]
    assert state["failure"]["what"] == "before a step: RuntimeError: broken on purpose"
    assert state["limits"] == state["boot"] == state["in_force"]
    assert one.running == 16 and one.tuner.state()["held_blocks"] == 0
    one.set(running_request_cap=4, preempt_excess=True)
    one.step()
    assert one.running == 4 and not one.tuner.state()["degraded"]
    one.run_dry()


def test_a_record_that_raises_does_not_stop_the_engine(engine, monkeypatch):
    one = engine()
    for _ in range(30):
        one.add(24, 20)
    one.set(running_request_cap=4)
    monkeypatch.setattr(StepRecord, "add", broken)
    one.steps(3)
    assert one.tuner.state()["failure"]["what"].startswith("after a step: RuntimeError")
    assert one.running == 16
    one.run_dry()


def test_a_pool_that_gives_no_blocks_does_not_stop_the_engine(engine, monkeypatch):
    one = engine(blocks=101)
    one.add(100, 20)
    with monkeypatch.context() as patch:
        patch.setattr(one.pool, "get_new_blocks", broken)
        answer = one.tuner.apply({"usable_kv_blocks": 50})
    assert not answer["ok"] and answer["errors"]["engine"].startswith("between steps: RuntimeError")
    one.run_dry()
    assert one.pool.get_num_free_blocks() == 100


def test_a_preemption_that_raises_does_not_stop_the_engine(engine, monkeypatch):
    one = engine()
    for _ in range(20):
        one.add(24, 20)
    one.steps(3)
    one.set(running_request_cap=4, preempt_excess=True)
    with monkeypatch.context() as patch:
        patch.setattr(one.scheduler, "_preempt_request", broken)
        one.step()
    assert one.tuner.state()["degraded"] and one.running == 16
    one.run_dry()


@pytest.mark.parametrize(
    ("document", "field", "said"),
    [
        (None, "body", "expected a JSON object, found None (NoneType)"),
        ([1], "body", "expected a JSON object"),
        ({}, "body", "expected at least one of running_request_cap"),
        ({"running_request_cap": "4"}, "running_request_cap", "expected a whole number from 0"),
        ({"running_request_cap": 4.5}, "running_request_cap", "found 4.5 (float)"),
        ({"running_request_cap": True}, "running_request_cap", "found True (bool)"),
        ({"tokens_per_step": -1}, "tokens_per_step", "found -1 (int)"),
        ({"tokens_per_step": 10**5000}, "tokens_per_step", "a number of many digits"),
        ({"usable_kv_blocks": float("nan")}, "usable_kv_blocks", "found nan"),
        ({"preempt_excess": 1}, "preempt_excess", "expected true or false"),
        ({"reset": None}, "reset", "expected true or false"),
        ({"__class__": 1}, "__class__", "unknown; expected one of"),
        ({7: 1}, "7", "unknown; expected one of"),
    ],
)
def test_a_bad_field_is_named_and_nothing_changes(engine, document, field, said):
    one = engine()
    before = one.tuner.state()
    answer = one.tuner.apply(document)
    assert not answer["ok"] and list(answer["errors"]) == [field] and said in answer["errors"][field]
    assert answer["limits"] == before["limits"] and answer["changes"] == []
    one.add(20, 3)
    one.run_dry()


def test_one_bad_field_refuses_the_whole_change(engine):
    one = engine()
    answer = one.tuner.apply({"running_request_cap": 2, "tokens_per_step": None, "x": 1})
    assert set(answer["errors"]) == {"tokens_per_step", "x"}
    assert answer["limits"]["running_request_cap"] == 16


def test_the_record_keeps_the_last_steps_and_the_limits_in_force(engine):
    one = engine()
    one.add(10, 30)
    one.steps(3)
    one.set(tokens_per_step=100)
    one.steps(2)
    rows = one.tuner.state(steps=3)["steps"]
    assert [row["step"] for row in rows] == [3, 4, 5]
    assert [row["limits"]["tokens_per_step"] for row in rows] == [256, 100, 100]
    assert rows[0]["running"] == 1 and rows[0]["tokens"] == 1
    assert "steps" not in one.tuner.state()
    assert [row["step"] for row in one.tuner.state(steps=2, since=1)["steps"]] == [2, 3]
    assert [row["step"] for row in one.tuner.state(steps=9, since=4)["steps"]] == [5]
    assert one.tuner.state(steps=9, since=5)["steps"] == []
    one.run_dry()


def test_the_record_forgets_the_oldest_steps():
    record = StepRecord()
    for number in range(1, CAPACITY + 101):
        record.add(Step(number, 0.0, 1, 0, 1, 0, 0, 0.0, None))
    assert record.last(CAPACITY + 5)[0].step == 101
    assert [step.step for step in record.after(7, 2)] == [101, 102]
    assert [step.step for step in record.after(CAPACITY + 98, 9)] == [CAPACITY + 99, CAPACITY + 100]
