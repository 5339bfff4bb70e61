"""The few sensible changes against a finding, for a search to choose from."""

import math
from collections.abc import Iterator

from harness.action import Action
from harness.diagnosis import Finding
from skills.proposal import held, propose
from skills.remedies import REMEDIES, Wish
from skills.skill import SkillContext, SkillError
from stack.catalogue import UNLIMITED, setting_named
from stack.setting import Scope, Setting, Value
from stack.snapshot import FLEET


def candidates(finding: Finding, ctx: SkillContext) -> tuple[Action, ...]:
    """Actions against a tunable `finding`, most fitting first, each within one allowed step of the value in force.

    Only enabled settings whose value was read are used, and nothing lets more requests run under KV pressure.
    Whether one is worth making is for the forecast and the gate to say.
    """
    remedy = REMEDIES.get(finding.cause)
    if remedy is None or not finding.tunable:
        return ()
    found: dict[tuple[str, str, Value], Action] = {}
    for wish in remedy(finding, ctx):
        for action in _actions(wish, finding, ctx):
            found.setdefault((action.setting, action.target, action.after), action)
    return tuple(found.values())


def _actions(wish: Wish, finding: Finding, ctx: SkillContext) -> Iterator[Action]:
    """The wish as an action; for the fleet, one per replica where the replicas differ."""
    setting, target, wanted = wish
    if setting not in ctx.enabled:
        return
    declared = setting_named(setting)
    for place in _places(declared, target, ctx):
        try:
            before = held(declared, place, ctx.snapshot)
            after = within_step(declared, before, wanted, ctx.snapshot.span(setting, place))
            yield propose(setting, place, after, ctx, finding, finding.claim)
        except SkillError:
            continue  # a wish that cannot be fulfilled is no candidate; the search says what it tried


def _places(declared: Setting, target: str, ctx: SkillContext) -> tuple[str, ...]:
    if declared.scope is Scope.POOL:
        return (FLEET,)
    told = ctx.snapshot.settings.get(declared.name, {})
    values = {told.get(replica) for replica in ctx.snapshot.replicas}
    if target == FLEET and len(values) > 1:
        return tuple(sorted(ctx.snapshot.replicas))
    return (target,)


def within_step(
    declared: Setting, before: Value, wanted: Value, span: tuple[float | None, float | None] = (None, None)
) -> Value:
    """`wanted` within one allowed step of `before`, within bounds, and whole where only whole numbers count.

    Args:
        span: lowest and highest value that the engine takes as it was started.
    """
    if isinstance(before, str) or isinstance(wanted, str):
        return wanted
    value = float(wanted)
    if declared.step_ratio is not None and before < UNLIMITED:
        longest = max(declared.step_ratio * abs(before), declared.step_min)
        value = min(before + longest, max(before - longest, value))
    if declared.integral:
        value = float(math.floor(value)) if value >= before else float(math.ceil(value))
    else:
        value = round(value, 6)
    lows = [low for low in (declared.low, span[0]) if low is not None]
    highs = [high for high in (declared.high, span[1]) if high is not None]
    return min([max([value, *lows]), *highs])
