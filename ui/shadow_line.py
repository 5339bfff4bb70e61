"""One judged decision as a line for people."""

import time

from harness.forecast.rehearsal import Change
from harness.policy import Policy
from harness.shadow.bar import harms
from harness.shadow.score import Hindsight, Operator, Played, Score
from stack.catalogue import in_words


def score_text(score: Score, policy: Policy) -> str:
    """When, what was decided, how it would have gone, and the best that could have been done."""
    when = time.strftime("%m-%d %H:%M:%S", time.localtime(score.decided_s))
    what = "change nothing"
    if score.setting is not None and score.before is not None and score.after is not None:
        what = f"{score.setting} on {score.target} {in_words(score.before)} -> {in_words(score.after)}"
    by_hand = "" if score.operator is None else f" {_by_hand(score.operator)}"
    if score.hindsight is None:
        return f"{when}  {what}: no score, {score.unscored} ({score.detail})"
    return f"{when}  {what}: {_judgement(score.hindsight, policy)}{by_hand}"


def _judgement(found: Hindsight, policy: Policy) -> str:
    verdict = "within" if found.regret_ratio <= policy.shadow.within_ratio else f"missed {found.regret_ratio:.0%}"
    if harms(found, policy):
        verdict = "HARMFUL"
    best = "change nothing" if found.best_change is None else _change(found.best_change)
    return (
        f"{verdict}. Nothing: {_played(found.nothing)}; decided: {_played(found.proposed)}; "
        f"best of {found.tried + 1}: {best}, {_played(found.best)}."
    )


def _by_hand(operator: Operator) -> str:
    """What somebody did, and whether its replay is like what was measured."""
    sides = {True: "as proposed", False: "against the proposal"}
    side = sides[operator.agrees] if operator.same_setting else "another setting"
    return (
        f"By hand: {_change(operator.change)} ({side}), {_played(operator.played)}, "
        f"measured {operator.measured_finished_per_s:.3g}/s answered."
    )


def _played(played: Played) -> str:
    return f"{played.share:.1%} in SLO, {played.finished_per_s:.3g}/s answered, median {played.e2e_p50_s:.3g} s"


def _change(change: Change) -> str:
    return f"{change.setting} on {change.target} to {in_words(change.value)}"
