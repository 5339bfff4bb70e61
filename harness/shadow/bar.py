"""What a setting's shadow record amounts to, and whether it is enough for the setting to act by itself."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from harness.journal.record import Record
from harness.outcome import Ending, Measured
from harness.policy import Policy
from harness.shadow.score import Hindsight, Score


@dataclass(frozen=True, kw_only=True)
class Standing:
    """A setting's record against the bar.

    Attributes:
        setting: None for the decisions to change nothing, which no setting is promoted by.
        decided: decisions whose window has passed.
        scored: those about which something can be said.
        repeated: those of them that only repeat what was decided shortly before, and are not counted.
        counted: the newest of these, as many as the bar asks for: what follows is of them.
        within: how many missed no more than the bar's ratio of the best.
        harmful: how many were worse than doing nothing.
        unscored: the others, by reason.
        missing: what is missing until the bar is passed, in words; empty when it is.
    """

    setting: str | None
    decided: int
    scored: int
    repeated: int
    counted: int
    within: int
    harmful: int
    unscored: Mapping[str, int]
    missing: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether `auto` may be offered for the setting."""
        return self.setting is not None and not self.missing


def standing(setting: str | None, scores: Sequence[Score], policy: Policy, harmed_s: float | None = None) -> Standing:
    """How a setting stands. Equal inputs give equal answers.

    Args:
        setting: a name; None for the decisions to change nothing.
        scores: of all settings, in the order of the decisions.
        harmed_s: when a change of the setting was last undone for harm. What was decided before counts no more: the
            record promised what did not hold.
    """
    bar = policy.shadow
    own = [one for one in scores if one.setting == setting and (harmed_s is None or one.decided_s > harmed_s)]
    known = [(one, one.hindsight) for one in own if one.hindsight is not None]
    distinct = tuple(_distinct(known, policy))
    newest = distinct[-bar.decisions_min :]
    within = sum(one.regret_ratio <= bar.within_ratio for one in newest)
    harmful = sum(harms(one, policy) for one in newest)
    return Standing(
        setting=setting,
        decided=len(own),
        scored=len(known),
        repeated=len(known) - len(distinct),
        counted=len(newest),
        within=within,
        harmful=harmful,
        unscored=dict(Counter(str(one.unscored) for one in own if one.unscored is not None)),
        missing=tuple(_missing(len(newest), within, harmful, policy)),
    )


def harms(hindsight: Hindsight, policy: Policy) -> bool:
    """Whether a decision was harmful, by the margins that measured changes are judged by."""
    plan = policy.verification
    return hindsight.harmful(margin_ratio=plan.goodput_margin_ratio, latency_margin_ratio=plan.harm_margin_ratio)


def passed(scores: Sequence[Score], policy: Policy, harmed_s: Mapping[str, float]) -> frozenset[str]:
    """The settings whose record passes the bar.

    Args:
        scores: in the order of the decisions.
        harmed_s: by setting, see `last_harm_s`.
    """
    settings = {one.setting for one in scores if one.setting is not None}
    return frozenset(name for name in settings if standing(name, scores, policy, harmed_s.get(name)).passed)


def last_harm_s(ended: Iterable[Record]) -> Mapping[str, float]:
    """When a change of each setting, made on the stack itself, was last undone because it was measured to be worse.

    One that was undone for want of proof did no harm; changes that were judged together share their verdict.
    """
    last_s: dict[str, float] = {}
    for record in ended:
        verification = record.verification
        worse = verification is not None and verification.measured is Measured.WORSE
        undone = record.outcome is not None and record.outcome.ending in (Ending.ROLLED_BACK, Ending.NEEDS_PERSON)
        if worse and undone and record.ended_s is not None:
            setting = record.action.setting
            last_s[setting] = max(record.ended_s, last_s.get(setting, record.ended_s))
    return last_s


def _distinct(scores: Iterable[tuple[Score, Hindsight]], policy: Policy) -> Iterator[Hindsight]:
    """What counts: of the same change decided again and again only the first within a time, and all that harm."""
    counted_s: dict[tuple[object, ...], float] = {}
    for score, hindsight in scores:
        change = (score.setting, score.target, score.before, score.after)
        repeated = change in counted_s and score.decided_s < counted_s[change] + policy.shadow.repeat_s
        if not repeated or harms(hindsight, policy):
            counted_s[change] = score.decided_s
            yield hindsight


def _missing(counted: int, within: int, harmful: int, policy: Policy) -> Iterator[str]:
    bar = policy.shadow
    if counted < bar.decisions_min:
        yield f"{bar.decisions_min - counted} more scored decisions ({counted} of {bar.decisions_min})"
    if counted and within < bar.share_min * counted:
        yield (
            f"{within} of {counted} decisions ({within / counted:.0%}) were within {bar.within_ratio:.0%} of the best, "
            f"{bar.share_min:.0%} are needed"
        )
    if harmful > bar.harmful_max:
        yield f"{harmful} harmful decisions, at most {bar.harmful_max}"
