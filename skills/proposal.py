"""A change that somebody named, made into an action, with all checks that need no gate."""

from harness.action import Action
from harness.diagnosis import Finding
from skills.pressure import room_for_more
from skills.replica import Replica
from skills.skill import NotApplicableError, SkillContext, SkillError
from stack.catalogue import setting_named
from stack.errors import UnknownSettingError
from stack.layer import Layer
from stack.setting import Effect, Scope, Setting, Value
from stack.snapshot import FLEET, Snapshot

GROWS_BATCH = frozenset({Effect.RELIEVES_QUEUE, Effect.RAISES_MEMORY})


def propose(
    setting: str,
    target: str,
    after: Value,
    ctx: SkillContext,
    finding: Finding,
    reason: str,
    requested_by: str = "agent",
) -> Action:
    """The action that sets `setting` on `target` to `after` because of `finding`.

    Raises:
        SkillError: the setting, target or value is not acceptable.
        NotApplicableError: they are, but the change cannot be made or would do nothing now.
    """
    declared = _declared(setting)
    if setting not in ctx.enabled:
        raise NotApplicableError(f"{setting} is not enabled; enabled are {', '.join(sorted(ctx.enabled)) or 'none'}")
    _check_target(declared, target, ctx.snapshot)
    problem = declared.problem_with(after)
    if problem:
        raise SkillError(problem)
    before = held(declared, target, ctx.snapshot)
    if before == after:
        raise NotApplicableError(f"{setting} on {target} already is {after}")
    refusal = memory_refusal(declared, target, before, after, ctx.snapshot)
    if refusal:
        raise NotApplicableError(refusal)
    return Action(
        setting=setting,
        target=target,
        before=before,
        after=after,
        cause=finding.cause,
        layer=Layer(finding.layer),
        reason=" ".join(reason.split()),
        requested_by=requested_by,
    )


def held(declared: Setting, target: str, snapshot: Snapshot) -> Value:
    """The value in force, from what was read.

    Raises:
        NotApplicableError: it was not read, or differs between the replicas of the fleet.
    """
    told = snapshot.settings.get(declared.name, {})
    if target in told:
        return told[target]
    if target == FLEET and declared.scope is Scope.REPLICA:
        missing = sorted(set(snapshot.replicas) - set(told))
        values = {told[replica] for replica in snapshot.replicas if replica in told}
        if not missing and len(values) == 1:
            return values.pop()
        if len(values) > 1:
            raise NotApplicableError(f"{declared.name} differs between replicas: name one of them")
    raise NotApplicableError(f"the value of {declared.name} on {target} was not read, so there is no way back")


def memory_refusal(declared: Setting, target: str, before: Value, after: Value, snapshot: Snapshot) -> str | None:
    """Why a change that lets more requests run must not be made now: KV before a bigger batch. None when it may."""
    if not GROWS_BATCH.issubset(declared.effects(before, after)):
        return None
    names = sorted(snapshot.replicas) if target == FLEET else [target]
    short = [name for name in names if not room_for_more(Replica(snapshot, name))]
    if not short:
        return None
    return (
        f"{declared.name} is not raised: KV use on {', '.join(short)} is unknown, was above the watermark, or requests "
        "were preempted in the window; a bigger batch would make that worse"
    )


def _declared(setting: str) -> Setting:
    try:
        return setting_named(setting)
    except UnknownSettingError as error:
        raise SkillError(str(error)) from error


def _check_target(declared: Setting, target: str, snapshot: Snapshot) -> None:
    if declared.scope is Scope.POOL:
        if target != FLEET:
            raise SkillError(f"{declared.name} applies to the whole pool: expected target {FLEET!r}, found {target!r}")
    elif target != FLEET and target not in snapshot.replicas:
        known = ", ".join(sorted(snapshot.replicas)) or "none"
        raise SkillError(f"no replica {target!r}; replicas are {known}, or {FLEET!r} for all of them")
