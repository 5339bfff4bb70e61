from dataclasses import replace

import numpy as np
import pytest

from stack.errors import InputError
from stack.reading import Gauge
from stack.simulator.fleet import FleetSpec
from stack.simulator.hardware.measured import MeasuredSteps, told
from stack.simulator.load.traffic import plain
from stack.simulator.simulation import Simulation

STEPS = MeasuredSteps(
    model="made",
    base_ms=30.0,
    token_ms=1.5,
    sequence_ms=2.0,
    kv_token_ms=0.01,
    kv_tokens=32_768,
    batch_max=16,
    error_ratio=0.05,
)
ALONE = FleetSpec(measured=STEPS, replicas=1)


@pytest.mark.parametrize("compiled", [True, False])
def test_steps_take_the_sum_of_their_parts(compiled):
    """One request of 100 prompt and 11 answer tokens: a prefill step, then ten decode steps with a growing context."""
    simulation = Simulation(ALONE, plain(np.zeros(1), np.array([100]), np.array([11])), compiled=compiled)
    simulation.advance(10.0)
    outcomes = simulation.outcomes()
    first_s = (30.0 + 1.5 * 100 + 2.0 + 0.01 * 100) / 1e3
    rest_s = sum(30.0 + 1.5 + 2.0 + 0.01 * (101 + k) for k in range(10)) / 1e3
    assert outcomes.ttft_s[0] == pytest.approx(first_s)
    assert outcomes.e2e_s[0] == pytest.approx(first_s + rest_s)


def test_the_engines_kv_is_what_it_says():
    assert ALONE.blocks_per_replica == 2_048
    too_long = Simulation(ALONE, plain(np.zeros(1), np.array([33_000]), np.array([2])))
    too_long.advance(100.0)
    assert np.isnan(too_long.outcomes().e2e_s[0])


def test_it_tells_its_step_times_and_nothing_of_a_device():
    (reading, *_) = Simulation(ALONE, plain(np.zeros(1), np.array([10]), np.array([2]))).readings()
    facts = reading.configuration
    assert told(facts, "step_token_ms") == 1.5 and told(facts, "step_kv_block_ms") == pytest.approx(0.16)
    assert "gpu" not in facts and Gauge.DEVICE_TOTAL_BYTES not in reading.gauges


@pytest.mark.parametrize(
    "wrong", [{"base_ms": -1.0}, {"token_ms": float("nan")}, {"kv_tokens": 3}, {"frontend_s": float("inf")}]
)
def test_impossible_times_are_refused(wrong):
    with pytest.raises(InputError):
        replace(STEPS, **wrong)


def test_step_times_of_another_profile_are_not_known():
    simulation = Simulation(ALONE, plain(np.zeros(1), np.array([10]), np.array([2])))
    with pytest.raises(InputError, match="measured under the profile in force"):
        simulation.write("execution_profile", "replica-0", "eager")
    assert simulation.read("execution_profile", "replica-0") == "default"


@pytest.mark.parametrize(("text", "value"), [("1.5", 1.5), (2.0, 2.0), ("much", None), ("nan", None)])
def test_facts_come_as_numbers_or_as_labels(text, value):
    assert told({"x": text}, "x") == value and told({}, "x") is None
