"""Which replicas a changed one is compared with."""

from dataclasses import replace

from judging import CAP_ON_ONE, POLICY
from made_fleet import BEFORE, Case, made, slower
from stack_noise import ASSUMED

from harness.verification.block import Block, Values, block_of
from harness.verification.controls import controls_of
from harness.verification.goal import Goal, goal_of
from harness.verification.verify import verify
from stack.snapshot import Signal

GOAL = goal_of(CAP_ON_ONE)


def sides(case: Case, seed: int = 1) -> tuple[list[Block], list[Block]]:
    found = [block for snapshot in made(case, ASSUMED, seed, ("r0",)) if (block := block_of(snapshot)) is not None]
    return found[:BEFORE], found[BEFORE:]


def with_values(blocks: list[Block], name: str, signal: Signal, factor: float) -> list[Block]:
    def changed(values: Values) -> Values:
        return {**values, signal: values[signal] * factor}

    return [replace(b, replicas={**b.replicas, name: changed(b.replicas[name])}) for b in blocks]


def without(blocks: list[Block], *names: str) -> list[Block]:
    return [replace(b, replicas={n: v for n, v in b.replicas.items() if n not in names}) for b in blocks]


def test_untouched_replicas_under_the_same_load_are_controls():
    assert controls_of(*sides(Case()), GOAL) == ("r1", "r2", "r3")
    assert controls_of(*sides(Case(load_step=0.4)), GOAL) == ("r1", "r2", "r3")


def test_two_controls_are_needed():
    before, after = sides(Case())
    assert controls_of(without(before, "r3"), without(after, "r3"), GOAL) == ("r1", "r2")
    assert controls_of(without(before, "r2", "r3"), without(after, "r2", "r3"), GOAL) == ()


def test_a_change_of_the_pool_has_no_controls():
    assert controls_of(*sides(Case()), Goal(("slo_share",))) == ()


def test_when_load_moves_away_from_the_changed_replica_nothing_can_stand_for_it():
    assert controls_of(*sides(Case(share=0.5)), GOAL) == ()
    before, after = sides(slower(0.0, share=0.5))
    assert verify(before, after, GOAL, POLICY).method == "load_adjusted"


def test_a_replica_with_other_requests_is_no_control():
    before, after = sides(Case())
    longer = with_values(after, "r1", Signal.PROMPT_TOKENS_MEAN, 2.0)
    assert controls_of(before, longer, GOAL) == ("r2", "r3")
    busier = [with_values(side, "r2", Signal.ARRIVED, 1.5) for side in (before, after)]
    assert controls_of(*busier, GOAL) == ("r1", "r3")


def test_a_replica_that_answered_nothing_for_a_block_is_no_control():
    before, after = sides(Case())
    after[3] = with_values([after[3]], "r3", Signal.FINISHED, 0.0)[0]
    assert controls_of(before, after, GOAL) == ("r1", "r2")
