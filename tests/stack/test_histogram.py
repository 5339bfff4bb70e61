"""Histogram arithmetic."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stack.histogram import increase, mean, merged, quantile
from stack.reading import Histogram

BOUNDS = (0.1, 0.5, 1.0, 5.0, 20.0, math.inf)
observations = st.lists(st.floats(0.0, 100.0), max_size=60)


def histogram(values: list[float]) -> Histogram:
    return Histogram(BOUNDS, tuple(float(sum(value <= bound for value in values)) for bound in BOUNDS), sum(values))


@given(observations, observations)
def test_the_increase_is_the_histogram_of_what_was_added(before, added):
    grown = increase(histogram(before), histogram(before + added))
    assert grown is not None
    assert grown.cumulative == histogram(added).cumulative
    assert grown.total == pytest.approx(sum(added), abs=1e-6)


@given(observations, observations)
def test_merging_equals_observing_together_in_any_order(first, second):
    left, right = merged([histogram(first), histogram(second)]), merged([histogram(second), histogram(first)])
    assert left is not None
    assert right is not None
    assert left.cumulative == histogram(first + second).cumulative == right.cumulative


@given(st.lists(st.floats(0.0, 20.0), min_size=1, max_size=60), st.floats(0.01, 1.0))
def test_a_quantile_lies_in_the_bucket_of_the_true_one(values, share):
    found = quantile(histogram(values), share)
    assert found is not None
    true = sorted(values)[max(0, math.ceil(share * len(values) - 1e-9) - 1)]
    place = next(place for place, bound in enumerate(BOUNDS) if true <= bound)
    assert (BOUNDS[place - 1] if place else 0.0) <= found <= BOUNDS[place]


@given(st.lists(st.floats(0.0, 20.0), min_size=1, max_size=60), st.floats(0.01, 1.0), st.floats(0.01, 1.0))
def test_quantiles_grow_with_their_share(values, one, other):
    low, high = quantile(histogram(values), min(one, other)), quantile(histogram(values), max(one, other))
    assert low is not None
    assert high is not None
    assert low <= high + 1e-9


def test_a_quantile_above_the_largest_bound_is_unknown():
    assert quantile(histogram([1.0, 2.0, 50.0]), 0.99) is None
    assert quantile(histogram([1.0, 2.0, 50.0]), 0.5) is not None


def test_nothing_observed_gives_nothing():
    assert quantile(histogram([]), 0.5) is None
    assert mean(histogram([])) is None


def test_an_unknown_sum_gives_no_mean():
    assert mean(Histogram((math.inf,), (5.0,), math.nan)) is None


def test_different_buckets_or_a_reset_have_no_increase():
    assert increase(histogram([1.0, 2.0]), histogram([1.0])) is None
    assert increase(histogram([1.0]), Histogram((math.inf,), (3.0,), 3.0)) is None
    assert merged([histogram([1.0]), Histogram((math.inf,), (3.0,), 3.0)]) is None
