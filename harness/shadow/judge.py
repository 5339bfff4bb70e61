"""A decision's score from the window that followed it, or the reason why nothing can be said."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

from harness.action import Action
from harness.forecast.believing import NoBeliefError
from harness.forecast.interval import SHARE_ROUNDING
from harness.forecast.rehearsal import Change
from harness.forecast.trust import doubts_of
from harness.objective import Slo
from harness.shadow.by_hand import agrees, changes_by_hand
from harness.shadow.choice import Choice
from harness.shadow.replay import Replay
from harness.shadow.score import Hindsight, Operator, Played, Score, Unscored, change_of
from stack.errors import FlashVectorError
from stack.setting import SettingClass
from stack.snapshot import Snapshot

COVERED_MIN_RATIO = 0.7
"""Part of the window that metrics must tell of."""
FINISHED_ROUNDING_RATIO = 0.01
"""Numbers of answers are not known better than this: the last ones end just inside or outside the window."""
Branch: TypeAlias = tuple[Change | None, Played]
"""What is changed, and what the requests get."""


def judged(choice: Choice, after: Sequence[Snapshot], slo: Slo, doubt: str = "") -> Score:
    """The score of a decision.

    Args:
        after: windows since the decision, oldest first, none overlapping another or the decision.
        doubt: why forecasts are not relied on at present; empty when they are.
    """
    action = choice.action
    empty = Score(
        setting=None if action is None else action.setting,
        target=None if action is None else action.target,
        before=None if action is None else action.before,
        after=None if action is None else action.after,
        action_id=choice.action_id,
        decided_s=choice.decided_s,
        planner=choice.planner,
    )
    by_hand = changes_by_hand(choice.snapshot, after)
    obstacle = _obstacle(choice, after, by_hand) or ((Unscored.DOUBTED, doubt) if doubt else None)
    if obstacle is not None:
        return replace(empty, unscored=obstacle[0], detail=obstacle[1])
    try:
        replay = Replay(choice.snapshot, after, slo, choice.window_s)
        return _replayed(choice, replay, by_hand[0] if by_hand else None, empty)
    except NoBeliefError as error:
        return replace(empty, unscored=Unscored.DOUBTED, detail=str(error))
    except FlashVectorError as error:
        return replace(empty, unscored=Unscored.DOUBTED, detail=f"the window cannot be replayed: {error}")


def _obstacle(choice: Choice, after: Sequence[Snapshot], by_hand: Sequence[Change]) -> tuple[Unscored, str] | None:
    """What stands against a replay before one is tried."""
    covered_s = sum(one.window_s or 0.0 for one in after)
    if covered_s < COVERED_MIN_RATIO * choice.window_s:
        return Unscored.BLIND, f"{covered_s:.0f} of {choice.window_s:.0f} s were seen"
    if any(one.replicas.keys() != choice.snapshot.replicas.keys() for one in after):
        return Unscored.REPLICAS, f"{', '.join(sorted(choice.snapshot.replicas))} were there when it was decided"
    if choice.action is not None and choice.action.declaration.setting_class is SettingClass.C:
        return Unscored.RESTART, choice.action.setting
    if len(by_hand) > 1:
        return Unscored.TOUCHED, ", ".join(f"{one.setting} on {one.target}" for one in by_hand)
    if choice.action is None and not choice.legal:
        return Unscored.NO_CHOICE, "no enabled setting had another value that the gate would have let pass"
    return None


def _replayed(choice: Choice, replay: Replay, done: Change | None, empty: Score) -> Score:
    action = choice.action
    doubts = list(doubts_of(replay.belief, action or choice.legal[0]))
    if doubts:
        return replace(empty, unscored=Unscored.DOUBTED, detail="; ".join(doubts))
    others = [change_of(one) for one in choice.legal if not list(doubts_of(replay.belief, one))]
    own = [] if action is None else [change_of(action)]
    for change in [*own, *others] + ([] if done is None else [done]):
        replay.pairs(change)
    unlike = replay.unlike(done)
    if unlike:
        return replace(empty, unscored=Unscored.UNLIKE, detail=unlike)
    return replace(
        empty,
        hindsight=_hindsight(replay, own[0] if own else None, others),
        operator=None if done is None else _operator(action, done, replay, choice.snapshot),
    )


def _hindsight(replay: Replay, own: Change | None, others: Sequence[Change]) -> Hindsight:
    nothing = replay.nothing()
    proposed = nothing if own is None else replay.changed(own)
    branches: list[Branch] = [(own, proposed), (None, nothing)]
    branches += [(change, replay.changed(change)) for change in others]
    change, best = _best(branches)
    return Hindsight(nothing, proposed, best, change, tried=len({*others, own} - {None}))


def _best(branches: Sequence[Branch]) -> Branch:
    """Most requests inside the SLO; of those equal in that, most answers; of those equal in both, the quickest."""
    share = max(played.share for _, played in branches)
    equal = [branch for branch in branches if branch[1].share >= share - SHARE_ROUNDING]
    finished = max(played.finished_per_s for _, played in equal)
    equal = [branch for branch in equal if branch[1].finished_per_s >= (1.0 - FINISHED_ROUNDING_RATIO) * finished]
    return min(equal, key=lambda branch: branch[1].e2e_p50_s)


def _operator(action: Action | None, done: Change, replay: Replay, then: Snapshot) -> Operator:
    return Operator(
        change=done,
        same_setting=action is not None and action.setting == done.setting,
        agrees=action is not None and agrees(action, done, then),
        played=replay.changed(done),
        measured_finished_per_s=replay.measured_finished_per_s,
    )
