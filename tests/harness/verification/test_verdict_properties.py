"""What must hold of every verdict, whatever the figures."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from judging import POLICY
from made_fleet import BEFORE, REPLICAS, Case, made, slower
from stack_noise import ASSUMED

from harness.objective import Slo
from harness.outcome import Measured
from harness.policy import Policy
from harness.verification.block import Block, Values, block_of
from harness.verification.goal import Goal
from harness.verification.verify import verify
from stack.snapshot import Signal

ON_ONE = Goal(("slo_share", "ttft_mean_s", "e2e_per_token_s"), "r0", per_replica=True)
ON_ALL = Goal(("slo_share", "ttft_mean_s", "e2e_per_token_s"))
GOALS = st.sampled_from([ON_ONE, ON_ALL])
SEEDS = st.integers(0, 10**6)
EFFECTS = st.floats(-0.6, 1.0)
LATENCIES = frozenset(signal for signal in Signal if signal.endswith("_s"))
SOURCES = tuple(
    frozenset(signal for signal in Signal if signal.startswith(prefix))
    for prefix in ("ttft", "itl", "e2e", "arrived", "error", "shed", "output_tokens", "prompt_tokens", "finished")
)
few = settings(max_examples=25, deadline=None, derandomize=True)


def blocks(case: Case, seed: int, goal: Goal) -> tuple[list[Block], list[Block]]:
    treated = REPLICAS if goal.target == "fleet" else (goal.target,)
    found = [block for snapshot in made(case, ASSUMED, seed, treated) if (block := block_of(snapshot)) is not None]
    return found[:BEFORE], found[BEFORE:]


def each(found: Sequence[Block], change: Callable[[Values], Values]) -> list[Block]:
    return [
        replace(b, fleet=change(b.fleet), replicas={name: change(v) for name, v in b.replicas.items()}) for b in found
    ]


def at(found: Sequence[Block], start_s: float) -> list[Block]:
    """The same blocks from `start_s` on."""
    return [
        replace(b, start_s=start_s + i * b.length_s, end_s=start_s + (i + 1) * b.length_s) for i, b in enumerate(found)
    ]


def promising(policy: Policy, factor: float) -> Policy:
    slo = Slo(policy.slo.ttft_s * factor, policy.slo.ttft_s_per_prompt_token * factor, policy.slo.itl_s * factor)
    return policy.model_copy(update={"slo": slo})


@few
@given(SEEDS, EFFECTS, GOALS, st.floats(0.3, 30.0))
def test_another_unit_of_time_changes_no_verdict(seed: int, effect: float, goal: Goal, factor: float):
    before, after = blocks(slower(effect), seed, goal)

    def scaled(values: Values) -> Values:
        return {signal: value * factor if signal in LATENCIES else value for signal, value in values.items()}

    plain = verify(before, after, goal, POLICY)
    other = verify(each(before, scaled), each(after, scaled), goal, promising(POLICY, factor))
    assert other.measured is plain.measured
    for name, numbers in plain.metrics.items():
        assert other.metrics[name]["ratio"] == pytest.approx(numbers["ratio"], rel=1e-6)


@few
@given(SEEDS, st.floats(-0.6, -0.3), GOALS)
def test_what_is_improved_is_worse_the_other_way_round(seed: int, effect: float, goal: Goal):
    before, after = blocks(slower(effect, warm_up=0.0), seed, goal)
    there = verify(at(before, 0.0), at(after, 5000.0), goal, POLICY)
    back = verify(at(after, 0.0), at(before, 5000.0), goal, POLICY)
    assert (there.measured, back.measured) == (Measured.IMPROVED, Measured.WORSE)


@few
@given(SEEDS, EFFECTS, GOALS, st.integers(0, 2), st.booleans())
def test_with_too_few_blocks_nothing_is_improved(seed: int, effect: float, goal: Goal, count: int, late: bool):
    before, after = blocks(slower(effect), seed, goal)
    found = verify(before, after[:count], goal, POLICY) if late else verify(before[:count], after, goal, POLICY)
    assert found.measured is not Measured.IMPROVED


@few
@given(SEEDS, EFFECTS, GOALS, st.floats(0.0, 0.01))
def test_with_too_few_requests_nothing_is_improved(seed: int, effect: float, goal: Goal, part: float):
    counts = (Signal.ARRIVED, Signal.FINISHED)
    before, after = (
        each(side, lambda values: {s: v * part if s in counts else v for s, v in values.items()})
        for side in blocks(slower(effect), seed, goal)
    )
    assert verify(before, after, goal, POLICY).measured is not Measured.IMPROVED


@few
@given(SEEDS, EFFECTS, GOALS, st.sets(st.sampled_from(SOURCES), min_size=1))
def test_losing_sight_of_something_never_makes_a_verdict_improved(
    seed: int, effect: float, goal: Goal, lost: set[frozenset[Signal]]
):
    before, after = blocks(slower(effect), seed, goal)
    gone = frozenset().union(*lost)
    blind = each(after, lambda values: {signal: value for signal, value in values.items() if signal not in gone})
    assert verify(before, blind, goal, POLICY).measured is not Measured.IMPROVED
