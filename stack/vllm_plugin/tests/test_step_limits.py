import pytest
from fake_engine import Engine, Setup
from vllm.v1.core.kv_cache_manager import KVCacheManager

HAS_WATERMARK = "watermark" in KVCacheManager.__init__.__code__.co_varnames


def test_tokens_per_step_bound_the_next_step(engine):
    one = engine(step_tokens=256)
    for _ in range(8):
        one.add(300, 5)
    assert one.step().total_num_scheduled_tokens == 256
    one.set(tokens_per_step=64)
    assert [one.step().total_num_scheduled_tokens for _ in range(3)] == [64, 64, 64]
    one.set(tokens_per_step=256)
    assert one.step().total_num_scheduled_tokens == 256
    one.run_dry()


def test_tokens_per_step_always_reach_every_running_request(engine):
    one = engine(step_tokens=256)
    answer = one.set(tokens_per_step=3)
    assert answer["limits"]["tokens_per_step"] == 16
    assert "tokens_per_step" in answer["adjusted"]
    assert one.set(running_request_cap=4, tokens_per_step=3)["limits"]["tokens_per_step"] == 4
    assert one.set(running_request_cap=12)["limits"]["tokens_per_step"] == 12


def test_long_prompts_are_cut(engine):
    one = engine(step_tokens=256)
    one.set(long_prefill_threshold_tokens=32)
    one.add(200, 4)
    one.add(200, 4)
    one.add(10, 4)
    assert one.step().num_scheduled_tokens == {"0": 32, "1": 32, "2": 10}
    one.set(long_prefill_threshold_tokens=0)
    scheduled = one.step().num_scheduled_tokens
    assert scheduled["0"] == 168
    one.run_dry()


def test_without_chunked_prefill_step_size_stays(model):
    one = Engine(Setup(chunked=False, step_tokens=512), model)
    answer = one.tuner.apply({"tokens_per_step": 64, "long_prefill_threshold_tokens": 8})
    assert not answer["ok"] and set(answer["errors"]) == {"tokens_per_step", "long_prefill_threshold_tokens"}
    one.add(400, 3)
    one.run_dry()


@pytest.mark.skipif(not HAS_WATERMARK, reason="vLLM before 0.26 has no watermark")
def test_a_watermark_keeps_blocks_free_on_admission(engine):
    one = engine(blocks=101)
    one.set(watermark_blocks=60)
    for _ in range(12):
        one.add(155, 4)
    running = []
    for _ in range(4):
        one.step()
        running.append(one.running)
        assert one.pool.get_num_free_blocks() >= 60
    assert 1 < max(running) <= 4
    one.set(watermark_blocks=0)
    one.steps(4)
    assert max(step.running for step in one.last(4)) > 4
    one.run_dry()


@pytest.mark.skipif(not HAS_WATERMARK, reason="vLLM before 0.26 has no watermark")
def test_a_watermark_always_leaves_room_for_the_longest_request(engine):
    one = engine(blocks=101, longest=512)
    assert one.set(watermark_blocks=99)["limits"]["watermark_blocks"] == 100 - 512 // 16
    answer = one.set(usable_kv_blocks=40)
    assert answer["limits"]["watermark_blocks"] == 40 - 512 // 16
    one.add(500, 12)
    one.run_dry()


@pytest.mark.skipif(HAS_WATERMARK, reason="vLLM from 0.26 on has a watermark")
def test_without_a_watermark_the_field_is_refused(engine):
    answer = engine().tuner.apply({"watermark_blocks": 5})
    assert answer["errors"] == {"watermark_blocks": "can't be changed: needs vLLM 0.26 or newer"}


def test_draft_length(model):
    one = Engine(Setup(drafts=4), model)
    if "speculative_tokens" in one.tuner.state()["unsupported"]:
        assert "0.26" in one.tuner.apply({"speculative_tokens": 1})["errors"]["speculative_tokens"]
        return
    for _ in range(6):
        one.add(20, 10)
    assert one.step().num_spec_tokens_to_schedule == 4
    for wanted in (2, 0, 4):
        one.set(speculative_tokens=wanted)
        assert one.step().num_spec_tokens_to_schedule == wanted
    assert one.scheduler.dynamic_sd_lookup is None
    one.run_dry()


def test_drafts_count_in_the_smallest_step(model):
    one = Engine(Setup(drafts=4, cap=16, step_tokens=256), model)
    assert one.set(tokens_per_step=1)["limits"]["tokens_per_step"] == 16 * 5


def test_without_speculation_the_draft_length_is_refused(engine):
    errors = engine().tuner.apply({"speculative_tokens": 2})["errors"]
    assert errors == {"speculative_tokens": "can't be changed: the engine was started without --speculative-config"}
