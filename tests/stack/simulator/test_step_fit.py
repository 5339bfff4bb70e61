import numpy as np
import pytest

from stack.simulator.hardware.step_fit import SeenSteps, error_ratio, fitted, non_negative


def made(n=600, *, base=30.0, token=1.4, sequence=0.0, block=0.0, seed=1, batches=(1, 17)):
    rng = np.random.default_rng(seed)
    sequences = rng.integers(*batches, n).astype(float)
    tokens = sequences + np.where(rng.random(n) < 0.2, rng.integers(30, 300, n), 0)
    blocks = sequences * rng.integers(2, 40, n)
    duration_ms = base + token * tokens + sequence * sequences + block * blocks
    return SeenSteps(duration_ms * rng.lognormal(0.0, 0.05, n), tokens, sequences, blocks)


def test_the_parts_of_a_step_are_found():
    fit = fitted(made(sequence=2.0, block=0.05, n=2000))
    assert fit.base_ms == pytest.approx(30.0, rel=0.08)
    assert fit.token_ms == pytest.approx(1.4, rel=0.08)
    assert fit.sequence_ms == pytest.approx(2.0, rel=0.25)
    assert fit.kv_block_ms == pytest.approx(0.05, rel=0.25)


def test_stalls_in_a_fifth_of_the_steps_change_little():
    steps = made()
    stalled = np.random.default_rng(2).random(len(steps)) < 0.2
    stalls = SeenSteps(steps.duration_ms * np.where(stalled, 8.0, 1.0), steps.tokens, steps.sequences, steps.kv_blocks)
    fit = fitted(stalls)
    assert fit.base_ms == pytest.approx(30.0, rel=0.1) and fit.token_ms == pytest.approx(1.4, rel=0.1)


def test_what_batches_that_are_alike_cannot_tell_is_left_out():
    fit = fitted(made(batches=(3, 5)))
    assert fit.sequence_ms == 0.0 and fit.kv_block_ms == 0.0
    assert fit.base_ms + 16 * fit.token_ms == pytest.approx(30.0 + 16 * 1.4, rel=0.1)


def test_a_negative_part_becomes_zero_and_the_rest_is_the_best_without_it():
    matrix = np.array([[1.0, 1.0], [1.0, 2.0], [1.0, 3.0]])
    assert non_negative(matrix, np.array([3.0, 2.0, 1.0])) == pytest.approx([2.0, 0.0])
    assert non_negative(matrix, np.array([1.0, 2.0, 3.0])) == pytest.approx([0.0, 1.0])


def test_the_error_is_that_on_kinds_not_seen():
    steps = made()
    prompts = np.log2(1 + steps.tokens - steps.sequences)
    kinds = 10 * (steps.sequences // 6).astype(int) + prompts.astype(int)
    assert error_ratio(steps, kinds) < 0.03
    bent = SeenSteps(30.0 + 0.2 * steps.tokens**1.5, steps.tokens, steps.sequences, steps.kv_blocks)
    assert error_ratio(bent, kinds) > 3 * error_ratio(steps, kinds)
