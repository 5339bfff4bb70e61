"""Errors, order and decisions, by hand."""

import pytest
from made_rows import open_row, row

from stack.simulator.validation.case import case_of
from stack.simulator.validation.figures import Figures
from stack.simulator.validation.picks import picks_of
from stack.simulator.validation.score import Compared, error_summary, errors_of, kendall_tau


def test_errors_by_hand():
    """Errors +10 %, -20 %, 0 %, +5 %: sizes 0, 5, 10, 20; median 7.5; 90th percentile 10 + 0.7 x 10."""
    found = error_summary([100.0, 100.0, 100.0, 100.0], [110.0, 80.0, 100.0, 105.0])
    assert found is not None
    assert found.n == 4
    assert found.mdape == pytest.approx(0.075)
    assert found.p90 == pytest.approx(0.17)
    assert found.bias == pytest.approx(0.025)
    assert error_summary([], []) is None


def test_rows_without_a_figure_do_not_count():
    given = Figures(tpot_ms=8.0, ttft_ms=30.0, e2e_ms=900.0, ttft_p50_ms=33.0, ttft_p99_ms=60.0)
    rows = [Compared(case_of(row("1")), given), Compared(case_of(open_row("2")), given)]
    p50 = errors_of(rows, lambda figures: figures.ttft_p50_ms)
    assert p50 is not None
    assert (p50.n, p50.bias) == (1, pytest.approx(0.1))


def test_kendall_by_hand():
    """1 2 3 4 against 1 3 2 4: five of six pairs agree, one does not."""
    assert kendall_tau([[(1, 1), (2, 3), (3, 2), (4, 4)]]) == pytest.approx(4 / 6)
    assert kendall_tau([[(1, 9), (2, 5), (3, 1)]]) == -1.0
    assert kendall_tau([[(1, 1)], []]) is None


def test_kendall_with_ties_by_hand():
    """Pairs (1,1)-(1,2) tied in one, (1,1)-(2,2) agree, (1,2)-(2,2) tied in the other: 1 / sqrt(2 x 2)."""
    assert kendall_tau([[(1, 1), (1, 2), (2, 2)]]) == pytest.approx(0.5)


def test_kendall_compares_within_groups_only():
    assert kendall_tau([[(1, 10), (2, 20)], [(100, 1), (200, 2)]]) == 1.0


def compared(row_id: str, users: float, measured_ms: float, simulated_ms: float, tensor_parallel: int = 1) -> Compared:
    case = case_of(
        row(row_id, concurrency=users, tpot_mean_ms=measured_ms, ttft_mean_ms=1.0, tensor_parallel=tensor_parallel)
    )
    e2e_ms = 1.0 + 127 * simulated_ms
    return Compared(case, Figures(tpot_ms=simulated_ms, ttft_ms=1.0, e2e_ms=e2e_ms, ttft_p50_ms=None, ttft_p99_ms=None))


def test_picks_by_hand():
    """8 users at 9 ms, 32 at 11.5, 64 at 16, all predicted right: every pick is the best there is.

    Limits 10 and 12 ms have one and two configurations within them as measured; 15 has two; from 20 on all three.
    """
    rows = [compared("1", 8, 9.0, 9.0), compared("2", 32, 11.5, 11.5), compared("3", 64, 16.0, 16.0)]
    found = picks_of(rows)
    assert found is not None
    assert (found.n, found.same, found.broken, found.regret) == (7, 1.0, 0.0, 0.0)


def test_a_pick_that_breaks_its_limit():
    """64 users are thought to take 14 ms and take 16: under 15 ms they are picked, and are 6.7 % above."""
    rows = [compared("1", 8, 9.0, 9.0), compared("2", 32, 11.5, 11.5), compared("3", 64, 16.0, 14.0)]
    found = picks_of(rows)
    assert found is not None
    assert found.broken == pytest.approx(1 / 7)


def test_regret_by_hand():
    """64 users are thought too slow for 20 ms: 32 are taken, whose throughput is lower as measured."""
    rows = [compared("1", 32, 11.5, 11.5), compared("2", 64, 16.0, 60.0)]
    found = picks_of(rows)
    assert found is not None
    best, taken = 64 / (1 + 127 * 16.0), 32 / (1 + 127 * 11.5)
    assert found.regret == pytest.approx((1 - taken / best) * 5 / found.n)
    assert picks_of([compared("1", 8, 9.0, 9.0)]) is None
