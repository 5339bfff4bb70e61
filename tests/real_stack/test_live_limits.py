"""Limits of a running vLLM, changed under constant load: when they take effect, and that no request suffers."""

import time
from itertools import pairwise

import pytest
from live import Live, Say, steps_after
from traffic import users

pytestmark = pytest.mark.real_stack

SMALL_RATIO = 0.13
"""Share of the KV blocks that just holds one request of the longest context."""
USERS = 24
CAP, LOW = 16, 4


@pytest.fixture(autouse=True)
def at_the_cap(live: Live) -> None:
    for name in live.names:
        live.control.write("running_request_cap", name, float(CAP))


def busy(live: Live) -> None:
    """Wait until r1 runs as many as it may."""
    until_s = time.monotonic() + 60
    while live.engine("r1").limits()["running"] < CAP:
        assert time.monotonic() < until_s, "the load never filled the cap"
        time.sleep(0.2)


def test_preempting_the_excess_and_raising_again_take_two_steps_at_most(live: Live, say: Say):
    with users(live.url_of("r1"), USERS) as traffic:
        busy(live)
        state = live.engine("r1").change_limits({"running_request_cap": LOW, "preempt_excess": True})
        time.sleep(2.0)
        lowered = steps_after(live.engine("r1"), state["step"])
        assert max(step["running"] for step in lowered[1:20]) <= LOW, lowered[:5]
        state = live.engine("r1").change_limits({"running_request_cap": CAP})
        time.sleep(2.0)
        raised = steps_after(live.engine("r1"), state["step"])
        assert raised[1]["running"] == CAP, raised[:5]
    preempted = sum(step["preempted"] for step in lowered[:2])
    by_step = [[step["running"] for step in steps[:4]] for steps in (lowered, raised)]
    counted = f"{preempted} preempted, {len(traffic.answers)} requests whole"
    say(f"running by step: 16 to 4 {by_step[0]}, 4 to 16 {by_step[1]}; {counted}")
    assert preempted >= CAP - LOW - 2
    assert not traffic.failed, traffic.failed[:3]


def test_draining_admits_nobody_above_the_cap_from_the_next_step(live: Live, say: Say):
    with users(live.url_of("r1"), USERS) as traffic:
        busy(live)
        live.control.write("running_request_cap", "r1", float(LOW))
        at = live.engine("r1").limits()["step"]
        until_s = time.monotonic() + 30
        while not live.engine("r1").limits()["settled"]:
            assert time.monotonic() < until_s, "the excess never drained"
            time.sleep(0.1)
        running = [step["running"] for step in steps_after(live.engine("r1"), at)]
    assert all(after <= max(LOW, before) for before, after in pairwise(running)), running
    assert running[-1] <= LOW
    assert not traffic.failed, traffic.failed[:3]
    steps = next(number for number, count in enumerate(running, 1) if count <= LOW)
    say(f"drained 16 to 4 in {steps} steps, {len(traffic.answers)} whole")


@pytest.mark.parametrize("tokens", [64, 256])
def test_no_step_computes_more_tokens_than_allowed(live: Live, tokens: int):
    with users(live.url_of("r1"), 8, prompt=(250, 350), output=(8, 12)) as traffic:
        time.sleep(2.0)
        live.control.write("tokens_per_step", "r1", float(tokens))
        at = live.engine("r1").limits()["step"]
        time.sleep(6.0)
        seen = [step["tokens"] for step in steps_after(live.engine("r1"), at)[1:]]
    assert max(seen) <= tokens, max(seen)
    assert max(seen) >= 0.9 * tokens, f"the load never used the budget: {max(seen)}"
    assert not traffic.failed, traffic.failed[:3]


def test_held_kv_blocks_bound_what_runs_and_come_back(live: Live, say: Say):
    with users(live.url_of("r1"), 16, prompt=(300, 380), output=(100, 150)) as traffic:
        time.sleep(6.0)
        before = live.engine("r1").limits()
        live.control.write("usable_kv_blocks_ratio", "r1", SMALL_RATIO)
        time.sleep(8.0)
        held = live.engine("r1").limits()
        live.control.write("usable_kv_blocks_ratio", "r1", 1.0)
        time.sleep(8.0)
        after = live.engine("r1").limits()
        steps = steps_after(live.engine("r1"), before["step"])
    assert held["held_blocks"] == held["held_blocks_wanted"] > 0
    assert max(step["kv_usage"] for step in steps) <= 1.0
    assert after["held_blocks"] == 0
    assert held["running"] < after["running"]
    assert not traffic.failed, traffic.failed[:3]
    say(
        f"running {before['running']} -> {held['running']} with {held['held_blocks']} blocks held -> {after['running']}"
    )
