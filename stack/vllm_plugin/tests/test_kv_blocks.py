import pytest


def test_blocks_shrink_and_grow_under_load_and_none_is_lost(engine):
    one = engine(blocks=101, longest=512)
    for _ in range(60):
        one.add(100, 40)
    one.steps(12)
    one.set(usable_kv_blocks=40)
    one.steps(60)
    assert len(one.tuner._held) == 60
    assert sum(step.preempted for step in one.last(60)) > 0
    one.steps(20)
    small = max(step.running for step in one.last(20))
    assert small <= 40 // 7
    one.set(usable_kv_blocks=100)
    assert one.tuner.state()["held_blocks"] == 0
    one.steps(12)
    assert one.running >= 2 * small
    one.run_dry()


def test_when_free_blocks_are_short_the_rest_is_taken_as_it_becomes_free(engine):
    one = engine(blocks=101, longest=512)
    for _ in range(6):
        one.add(240, 40)
    one.steps(12)
    free = one.pool.get_num_free_blocks()
    assert free < 60
    state = one.set(usable_kv_blocks=40)
    assert (state["held_blocks"], state["held_blocks_wanted"], state["settled"]) == (free, 60, False)
    one.run_dry()
    assert one.tuner.state()["held_blocks"] == 60 and one.tuner.state()["settled"]


def test_the_longest_request_always_fits(engine):
    one = engine(blocks=101, longest=512)
    answer = one.set(usable_kv_blocks=1)
    assert answer["limits"]["usable_kv_blocks"] == 512 // 16 and "usable_kv_blocks" in answer["adjusted"]
    one.add(500, 12)
    one.add(500, 12)
    one.run_dry()


def test_usage_counts_usable_blocks_only_and_shows_in_vllms_own_metric(engine):
    one = engine(blocks=101, longest=512)
    one.add(160, 30)
    one.steps(4)
    used = 100 - one.pool.get_num_free_blocks()
    assert one.scheduler.kv_cache_manager.usage == pytest.approx(used / 100)
    one.set(usable_kv_blocks=50)
    assert one.scheduler.kv_cache_manager.usage == pytest.approx(used / 50)
    one.steps(2)
    used = 100 - one.pool.get_num_free_blocks() - 50
    assert one.scheduler.make_stats().kv_cache_usage == pytest.approx(used / 50)
    assert one.last()[0].kv_usage == pytest.approx(used / 50, abs=0.03)
    one.run_dry()
    assert one.scheduler.kv_cache_manager.usage == 0.0


def test_the_prefix_cache_can_be_reset_while_blocks_are_held(engine):
    one = engine(blocks=101, longest=512)
    one.add(160, 5)
    one.run_dry()
    one.set(usable_kv_blocks=50)
    assert one.scheduler.reset_prefix_cache()
    assert one.pool.get_num_free_blocks() == 100
    one.add(160, 5)
    one.step()
    assert len(one.tuner._held) == 50
    one.run_dry()


def test_a_reset_of_the_prefix_cache_under_load_loses_no_token(engine):
    one = engine(blocks=101, longest=512)
    for _ in range(10):
        one.add(100, 20)
    one.steps(5)
    one.set(usable_kv_blocks=60)
    assert not one.scheduler.reset_prefix_cache()
    one.run_dry()
