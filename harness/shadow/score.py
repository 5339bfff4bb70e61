"""How good a decision was, seen afterwards: numbers only, no judgement that a policy could make differently."""

from dataclasses import dataclass
from enum import StrEnum

from harness.action import Action
from harness.forecast.interval import SHARE_ROUNDING
from harness.forecast.rehearsal import Change
from stack.setting import Value


class Unscored(StrEnum):
    """Why nothing is claimed about a decision."""

    DOUBTED = "forecast doubted"
    UNLIKE = "replay unlike what was measured"
    BLIND = "metrics missing in its window"
    RESTART = "takes a restart, which is not replayed"
    REPLICAS = "replicas came or went in its window"
    TOUCHED = "several settings were changed by hand in its window"
    NO_CHOICE = "nothing else could have been chosen"


@dataclass(frozen=True)
class Played:
    """What the requests of the window got in the replay, in the order in which it counts.

    Attributes:
        share: of the requests that arrived, inside the SLO.
        finished_per_s: requests answered, a backlog's included: while that makes all late, it alone tells a repair.
        e2e_p50_s: median time of a whole request. The same requests are replayed in every branch, so it needs no
            division by their tokens.
    """

    share: float
    finished_per_s: float
    e2e_p50_s: float


@dataclass(frozen=True)
class Operator:
    """What somebody changed by hand in the window, replayed and measured.

    Attributes:
        same_setting: whether it was the setting that was proposed to be changed ...
        agrees: ... on an overlapping target and in the proposed direction.
        measured_finished_per_s: requests answered, according to the metrics.
    """

    change: Change
    same_setting: bool
    agrees: bool
    played: Played
    measured_finished_per_s: float


@dataclass(frozen=True)
class Hindsight:
    """Every branch of the replay.

    Attributes:
        nothing: the stack left as it was.
        proposed: with the decision carried out.
        best: with the best of all that could have been chosen, doing nothing and the proposal included.
        best_change: what that was; None for doing nothing.
        tried: how many changes were replayed.
    """

    nothing: Played
    proposed: Played
    best: Played
    best_change: Change | None
    tried: int

    @property
    def regret_ratio(self) -> float:
        """What the decision missed of the best: the largest of the parts missed of each figure, 0 for nothing."""
        mine, best = self.proposed, self.best
        missed = (
            _short(mine.share, best.share, SHARE_ROUNDING),
            _short(mine.finished_per_s, best.finished_per_s),
            mine.e2e_p50_s / best.e2e_p50_s - 1.0 if best.e2e_p50_s > 0 else 0.0,
        )
        return max(0.0, *missed)

    def harmful(self, *, margin_ratio: float, latency_margin_ratio: float) -> bool:
        """Whether the decision was worse than doing nothing. The first figure that moved beyond its margin decides."""
        mine, none = self.proposed, self.nothing
        share = _short(mine.share, none.share, SHARE_ROUNDING)
        for short in (share, _short(mine.finished_per_s, none.finished_per_s)):
            if abs(short) > margin_ratio:
                return short > 0
        return mine.e2e_p50_s > (1.0 + latency_margin_ratio) * none.e2e_p50_s


def _short(mine: float, other: float, known_to: float = 0.0) -> float:
    """Part by which `mine` is less than `other`, negative where it is more; 0 where that is less than can be known."""
    return (other - mine) / max(other, mine) if abs(other - mine) > known_to else 0.0


@dataclass(frozen=True, kw_only=True)
class Score:
    """One decision's row. It is written once and changes nothing about the decision.

    Attributes:
        setting, target, before, after: the proposed change; None all four for the decision to change nothing.
        action_id: the proposal's row in the journal.
        decided_s: stack time.
        planner: who decided.
        hindsight: what the replay says; None when nothing can be claimed.
        unscored, detail: then why, as a kind and in words.
        operator: what somebody changed meanwhile.
    """

    setting: str | None
    target: str | None
    before: Value | None
    after: Value | None
    action_id: int | None
    decided_s: float
    planner: str
    hindsight: Hindsight | None = None
    unscored: Unscored | None = None
    detail: str = ""
    operator: Operator | None = None


def change_of(action: Action) -> Change:
    """What a replay writes for an action."""
    return Change(action.setting, action.target, action.after)
