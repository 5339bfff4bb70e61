"""Random changes over random loads: whatever is asked, the engine lives, loses nothing and stays inside its limits."""

from dataclasses import asdict

import pytest
from conftest import KINDS
from fake_engine import Engine, Setup
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

NUMBERS = st.one_of(st.integers(0, 20), st.integers(0, 600), st.sampled_from([0, 1, 2**31 - 1]))
CHANGES = st.fixed_dictionaries(
    {},
    optional={
        "running_request_cap": NUMBERS,
        "tokens_per_step": NUMBERS,
        "long_prefill_threshold_tokens": NUMBERS,
        "usable_kv_blocks": NUMBERS,
        "watermark_blocks": NUMBERS,
        "preempt_excess": st.booleans(),
        "reset": st.booleans(),
        "speculative_tokens": st.just(0),
        "nonsense": st.sampled_from([None, "x", -1]),
    },
)
LOADS = st.lists(st.tuples(st.integers(1, 300), st.integers(1, 60), st.booleans()), max_size=12)
ACTIONS = st.one_of(
    CHANGES.map(lambda change: ("change", change)),
    LOADS.map(lambda load: ("load", load)),
    st.integers(1, 25).map(lambda count: ("steps", count)),
    st.integers(0, 40).map(lambda index: ("abort", index)),
    st.booleans().map(lambda running: ("reset cache", running)),
)
SETUPS = st.builds(
    Setup,
    cap=st.integers(1, 24),
    step_tokens=st.sampled_from([64, 256]),
    blocks=st.integers(26, 140),
    longest=st.just(400),
    policy=st.sampled_from(["fcfs", "priority"]),
)


def checked_step(one):
    before = {request.request_id for request in one.scheduler.running}
    eligible = sum(one.scheduler.get_request_counts())
    scheduled = one.step()
    step, after = one.last()[0], {request.request_id for request in one.scheduler.running}
    limits, granted = step.limits, scheduled.num_scheduled_tokens
    assert step.running <= max(limits.running_request_cap, len(before))
    if len(before) >= limits.running_request_cap:
        assert after <= before
    assert step.tokens == sum(granted.values()) <= limits.tokens_per_step
    if limits.long_prefill_threshold_tokens and eligible > 1:
        assert all(tokens <= limits.long_prefill_threshold_tokens for tokens in granted.values())
    assert 0.0 <= step.kv_usage <= 1.0
    assert step.held_blocks <= one.setup.blocks - 1 - limits.usable_kv_blocks


def checked_change(one, change):
    before = one.tuner.state()["limits"]
    answer = one.tuner.apply(change)
    bounds = one.tuner._bounds
    assert answer["ok"] == (not answer["errors"]) and answer["failure"] is None
    if not answer["ok"]:
        assert answer["limits"] == before
    elif answer["limits"] != asdict(bounds.boot):
        for name, value in answer["limits"].items():
            low, high = bounds.span(name)
            assert low <= value <= high, name
        reach = answer["limits"]["running_request_cap"] * (1 + answer["limits"]["speculative_tokens"])
        assert answer["limits"]["tokens_per_step"] >= reach


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(setup=SETUPS, actions=st.lists(ACTIONS, min_size=4, max_size=25))
def test_any_changes_over_any_load(model, kind, setup, actions):
    asynchronous, lag = KINDS[kind]
    one = Engine(setup, model, asynchronous, lag)
    for action, value in actions:
        if action == "change":
            checked_change(one, value)
        elif action == "load":
            for prompt, output, shared in value:
                one.add(prompt, output, shared, priority=output % 3)
        elif action == "abort":
            one.abort(str(value))
        elif action == "reset cache":
            one.scheduler.reset_prefix_cache(reset_running_requests=value and not one.in_flight)
        else:
            for _ in range(value):
                checked_step(one)
    one.run_dry()
    assert one.tuner.state()["failure"] is None


@pytest.mark.parametrize("kind", KINDS)
def test_after_a_reset_everything_is_as_started(model, kind):
    one = Engine(Setup(), model, *KINDS[kind])
    boot = one.tuner.state()["boot"]
    one.set(running_request_cap=2, tokens_per_step=8, usable_kv_blocks=50, long_prefill_threshold_tokens=5)
    one.add(100, 10)
    one.steps(3)
    state = one.set(reset=True)
    assert state["limits"] == boot == state["in_force"] and state["held_blocks"] == 0
    one.run_dry()
    assert one.pool.get_num_free_blocks() == one.setup.blocks - 1
