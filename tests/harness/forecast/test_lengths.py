import numpy as np
import pytest

from harness.forecast.lengths import Lengths, lengths_of
from stack.reading import Distribution, Histogram
from stack.snapshot import Snapshot

BOUNDS = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0, 5000.0, 10000.0, 20000.0, float("inf"))


def seen(values):
    counts = tuple(float((values <= bound).sum()) for bound in BOUNDS)
    histogram = Histogram(BOUNDS, counts, float(values.sum()))
    snapshot = Snapshot(0.0, 60.0, 2, {}, {}, distributions={Distribution.PROMPT_TOKENS: histogram})
    return lengths_of([snapshot], Distribution.PROMPT_TOKENS)


@pytest.mark.parametrize(("median", "sigma"), [(900, 0.8), (13, 0.9), (4000, 0.4)])
def test_the_tail_of_log_normal_lengths_survives_the_buckets(median, sigma):
    rng = np.random.default_rng(1)
    values = np.maximum(1, np.rint(rng.lognormal(np.log(median), sigma, 20_000)))
    drawn = seen(values).draw(50_000, rng)
    assert drawn.mean() == pytest.approx(values.mean(), rel=0.03)
    for share in (0.1, 0.5, 0.9, 0.99):
        assert np.quantile(drawn, share) == pytest.approx(np.quantile(values, share), rel=0.12, abs=1.0)


@pytest.mark.parametrize("constant", [1, 128, 512])
def test_equal_lengths_stay_near_what_they_are(constant):
    drawn = seen(np.full(500, constant)).draw(5_000, np.random.default_rng(1))
    assert drawn.mean() == pytest.approx(constant, rel=0.05, abs=0.5)


def test_two_far_apart_kinds_keep_their_shares():
    values = np.concatenate([np.full(900, 30), np.full(100, 6000)])
    drawn = seen(values).draw(20_000, np.random.default_rng(1))
    assert (drawn > 1000).mean() == pytest.approx(0.1, abs=0.02)


def test_requests_in_service_are_longer_than_those_that_come():
    lengths = Lengths((0.0, 100.0, 1000.0), (0.9, 0.1), 130.0)
    rng = np.random.default_rng(1)
    come, met = lengths.draw(50_000, rng), lengths.draw_in_service(50_000, rng)
    assert met.mean() == pytest.approx((come.astype(float) ** 2).mean() / come.mean(), rel=0.1)


def test_draws_above_a_border_lie_above_it_even_where_none_was_seen():
    lengths = Lengths((0.0, 100.0, 1000.0), (0.9, 0.1), 130.0)
    rng = np.random.default_rng(1)
    assert lengths.draw_above(300.0, 500, rng).min() >= 300
    assert 5000 <= lengths.draw_above(5000.0, 500, rng).min() < 10_001
