from dataclasses import asdict, replace

from flashvector_vllm.limits import LIMIT_NAMES, Bounds, Limits
from hypothesis import given
from hypothesis import strategies as st

BOOT = Limits(64, 512, 0, 1000, 0, 4)
"""As vLLM may be started: 64 requests with 4 drafts each ask for 320 of 512 tokens."""
BOUNDS = Bounds(
    boot=BOOT,
    floor=Limits(1, 1, 0, 128, 0, 0),
    ceiling=replace(BOOT, running_request_cap=128, long_prefill_threshold_tokens=2048, watermark_blocks=872),
    longest_request_blocks=128,
)
ASKED = st.builds(Limits, *[st.one_of(st.integers(0, 200), st.integers(0, 2**31 - 1)) for _ in LIMIT_NAMES])


@given(ASKED)
def test_fitted_limits_are_inside_and_consistent(asked):
    fitted = BOUNDS.fitted(asked)
    for name, value in asdict(fitted).items():
        low, high = BOUNDS.span(name)
        assert low <= value <= high
    assert fitted.tokens_per_step >= fitted.running_request_cap * (1 + fitted.speculative_tokens)
    assert fitted.usable_kv_blocks - fitted.watermark_blocks >= BOUNDS.longest_request_blocks
    assert BOUNDS.fitted(fitted) == fitted


@given(ASKED)
def test_a_value_inside_its_bounds_that_conflicts_with_nothing_is_taken_as_asked(asked):
    one = replace(BOOT, long_prefill_threshold_tokens=asked.long_prefill_threshold_tokens % 2049)
    assert BOUNDS.fitted(one) == one


def test_a_cap_whose_drafts_exceed_the_largest_step_is_cut():
    assert BOUNDS.fitted(replace(BOOT, running_request_cap=128)).running_request_cap == 512 // 5
    without = BOUNDS.fitted(replace(BOOT, running_request_cap=128, speculative_tokens=0))
    assert without.running_request_cap == 128


def test_boot_limits_stand_even_where_they_break_the_rules():
    tight = replace(BOOT, tokens_per_step=100)
    bounds = replace(BOUNDS, boot=tight, ceiling=replace(BOUNDS.ceiling, tokens_per_step=100))
    assert bounds.fitted(tight) == tight
    other = bounds.fitted(replace(tight, long_prefill_threshold_tokens=64))
    assert (other.running_request_cap, other.tokens_per_step) == (64, 100)
