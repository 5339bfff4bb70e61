import numpy as np
import pytest

from stack.errors import InputError
from stack.local.engine.step_times import MIXED_KEPT, PURE_KEPT, StepTimes

USABLE = 1024


def record(n, *, seed=1, first=1, from_s=1000.0, batches=(1, 9), lag=0, prompts=True, slow=1.0):
    """Steps as the plugin gives them: 30 ms, 1.5 ms a token and 0.1 ms a block."""
    rng = np.random.default_rng(seed)
    running = rng.integers(*batches, n)
    tokens = running + np.where(rng.random(n) < (0.2 if prompts else 0.0), rng.integers(30, 300, n), 0)
    blocks = running * rng.integers(2, 12, n)
    took_s = slow * (30.0 + 1.5 * tokens + 0.1 * blocks) / 1e3
    times = from_s + np.concatenate([np.zeros(1 + lag), np.cumsum(took_s)])[:n]
    return [step(first + k, times[k], running[k], tokens[k], blocks[k]) for k in range(n)]


def step(number, time_s, running, tokens, blocks):
    return {
        "step": number,
        "time_s": float(time_s),
        "running": int(running),
        "waiting": 0,
        "tokens": int(tokens),
        "kv_usage": float(blocks) / USABLE,
        "limits": {"usable_kv_blocks": USABLE},
    }


def answer(steps, newest=None):
    boot = {"running_request_cap": 32, "tokens_per_step": 2048}
    return {"step": newest or steps[-1]["step"], "boot": boot, "steps": steps}


def learnt(*parts):
    times = StepTimes()
    for part in parts:
        times.add(answer(part))
    return times


def test_step_times_are_learnt_from_the_record():
    facts = learnt(record(1500)).facts()
    assert facts["step_fit"] == "ok" and facts["step_lag"] == 0.0
    assert facts["step_base_ms"] == pytest.approx(30.0, rel=0.05)
    assert facts["step_token_ms"] == pytest.approx(1.5, rel=0.05)
    assert facts["step_batch_min"] == 1.0 and facts["step_batch_max"] == 8.0
    assert facts["step_fit_error_ratio"] < 0.05
    assert facts["max_num_seqs"] == 32.0 and facts["max_num_batched_tokens"] == 2048.0


def test_many_answers_that_overlap_tell_the_same_as_one():
    steps = record(600)
    times = StepTimes()
    for end in range(50, 601, 50):
        times.add(answer(steps[max(0, end - 80) : end]))
    assert times.since == 600
    assert times.facts() == learnt(steps).facts()


def test_idle_time_is_no_step():
    steps, later = record(300), record(300, seed=2, first=302, from_s=5000.0)
    end = step(301, steps[-1]["time_s"] + 0.05, 0, 0, 0)
    assert learnt([*steps, end, *later]).facts()["step_base_ms"] == pytest.approx(30.0, rel=0.05)


def test_steps_that_were_missed_join_nothing():
    steps = record(600)
    facts = learnt(steps[:200], steps[400:]).facts()
    assert facts["step_base_ms"] == pytest.approx(30.0, rel=0.06)


def test_a_restarted_engine_is_learnt_anew():
    times = learnt(record(800, slow=3.0))
    times.add({"step": 3, "boot": {}, "steps": []})
    assert times.since == 0 and "step_fit" not in times.facts()
    times.add(answer(record(800, from_s=9000.0)))
    assert times.facts()["step_base_ms"] == pytest.approx(30.0, rel=0.05)


def test_a_pipeline_that_schedules_one_step_ahead_is_seen():
    facts = learnt(record(1500, lag=1)).facts()
    assert facts["step_lag"] == 1.0
    assert facts["step_token_ms"] == pytest.approx(1.5, rel=0.05)


@pytest.mark.parametrize(
    "steps", [record(500, batches=(4, 5), prompts=False), record(20), record(500, batches=(4, 6), prompts=False)]
)
def test_batches_that_are_all_alike_are_too_narrow(steps):
    facts = learnt(steps).facts()
    assert facts["step_fit"].startswith("too narrow: ") and "step_base_ms" not in facts


def test_nothing_seen_tells_nothing():
    assert StepTimes().facts() == {} and StepTimes().since == 0


def test_old_steps_are_forgotten_and_memory_is_bounded():
    times = StepTimes()
    for part in range(20):
        times.add(answer(record(1000, seed=part, first=1 + 1000 * part, from_s=1000.0 + 70 * part, slow=2.0)))
    kinds = len({(one.sequences, one.tokens > one.sequences) for one in times._rows()})
    assert len(times._rows()) <= 8 * PURE_KEPT + 8 * 5 * MIXED_KEPT and kinds == 16
    times.add(answer(record(1500, first=20_001, from_s=9000.0)))
    assert times.facts()["step_base_ms"] == pytest.approx(30.0, rel=0.05)


@pytest.mark.parametrize("answered", [{"steps": [{"step": 601}]}, {"steps": "none"}, {"step": "x"}])
def test_an_answer_of_another_form_is_refused_and_nothing_is_lost(answered):
    times = learnt(record(600))
    before = times.facts()
    with pytest.raises(InputError, match="steps"):
        times.add(answered)
    assert times.facts() == before
