"""All of a stack's shadow record, as an operator decides by it."""

from dataclasses import dataclass

from harness.action import AGENT
from harness.journal.reading import JournalReader
from harness.journal.record import State
from harness.policy import Policy
from harness.shadow.bar import Standing, last_harm_s, standing
from harness.shadow.record import ShadowRecord
from harness.shadow.score import Score


@dataclass(frozen=True, kw_only=True)
class SettingRecord:
    """One setting's row.

    Attributes:
        proposed: changes of it that were shadowed.
        denied: changes of it that the gate refused.
        waiting: shadowed ones without a score: the window has not passed, or the process ended before it had.
        harmed_s: when its record began anew because a change was undone for harm; None when it never did.
    """

    standing: Standing
    enabled: bool
    vouched: bool
    proposed: int
    denied: int
    waiting: int
    harmed_s: float | None


@dataclass(frozen=True, kw_only=True)
class Overview:
    """The record by setting, the decisions to change nothing, and every decision in their order."""

    settings: tuple[tuple[str, SettingRecord], ...]
    nothing: Standing
    scores: tuple[Score, ...]


def overview(record: ShadowRecord, journal: JournalReader, policy: Policy) -> Overview:
    """What is known of every setting that is enabled or was ever decided on."""
    scores, harmed_s = record.scores(), last_harm_s(journal.ended())
    rows = [r for r in journal.records({State.SHADOWED, State.DENIED}) if r.action.requested_by == AGENT]
    scored = {score.action_id for score in scores}
    names = policy.enabled | {r.action.setting for r in rows} | {s.setting for s in scores if s.setting is not None}

    def of(name: str) -> SettingRecord:
        own = [r for r in rows if r.action.setting == name]
        shadowed = [r for r in own if r.state is State.SHADOWED]
        return SettingRecord(
            standing=standing(name, scores, policy, harmed_s.get(name)),
            enabled=name in policy.enabled,
            vouched=name in policy.vouched,
            proposed=len(shadowed),
            denied=len(own) - len(shadowed),
            waiting=sum(r.id not in scored for r in shadowed),
            harmed_s=harmed_s.get(name),
        )

    settings = tuple((name, of(name)) for name in sorted(names))
    return Overview(settings=settings, nothing=standing(None, scores, policy), scores=scores)
