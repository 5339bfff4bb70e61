"""The traffic of a row."""

import numpy as np
import pytest
from made_rows import open_row, row

from stack.simulator.validation.case import case_of
from stack.simulator.validation.workload import workload

REUSED = "on, 10x10=100 distinct prompts => ~full hits"


def test_a_closed_loop_sends_ten_requests_a_user_with_the_published_lengths():
    traffic, before = workload(case_of(row(concurrency=8.0)))
    assert (len(traffic), traffic.users, before) == (80, 8, 0)
    assert (traffic.prompt_tokens == 512).all()
    assert abs(traffic.output_tokens.mean() - 128) < 4
    assert np.ptp(traffic.output_tokens) > 10


def test_random_lengths_follow_the_note():
    note = "client random lengths in [0.8,1.0]*ISL/OSL"
    traffic, _ = workload(case_of(row(concurrency=64.0, note=note, tpot_mean_ms=50.0)))
    assert traffic.prompt_tokens.min() >= 409
    assert traffic.prompt_tokens.max() <= 512
    assert 113 < traffic.output_tokens.mean() < 118


def test_an_open_loop_keeps_its_rate():
    traffic, before = workload(case_of(open_row(request_rate_per_s=4.0)))
    assert (len(traffic), before, traffic.chunks) == (2400, 0, 0)
    assert np.diff(traffic.arrival_s) == pytest.approx(0.25)
    hasty, _ = workload(case_of(open_row(request_rate_per_s=1e6)))
    assert len(hasty) == 50_000


def test_repeated_prompts_share_their_prefix_and_a_later_stage_finds_it_cached():
    first, before = workload(case_of(open_row(prompt_tokens=1024.0, prefix_caching=REUSED, source="x/stage_0_y.json")))
    assert before == 0
    assert first.chain_start[0] == first.chain_start[100] != first.chain_start[1]
    later, before = workload(case_of(open_row(prompt_tokens=1024.0, prefix_caching=REUSED, source="x/stage_1_y.json")))
    assert before == 100
    assert len(later) == len(first) + 100
    assert later.arrival_s[100] >= later.arrival_s[99] + 2.0
