"""Restart an engine, for what only a restart heals."""

from skills.argument import Cause, Reason, Target
from skills.diagnose import finding_named
from skills.proposal import held, propose
from skills.replica import Replica
from skills.skill import NotApplicableError, Result, SkillContext, skill
from stack.catalogue import setting_named
from stack.layer import Layer
from stack.snapshot import Signal

CALM_KV_RATIO = 0.3
"""The gate's own limit for a restart: above it too many answers are under way."""
SETTING = "worker_generation"


@skill(effect="propose", layer=Layer.MEMORY, setting=SETTING)
def restart_worker(ctx: SkillContext, target: Target, cause: Cause, reason: Reason) -> Result:
    """Propose to drain, restart and put back one worker, only at low traffic with an empty queue.

    Use it against memory fragmentation, not against load.

    Args:
        target: name of the replica.
        cause: code of the finding in the present diagnosis that this answers.
        reason: why, in one sentence with the numbers that decided it.
    """
    obstacle = restart_obstacle(Replica(ctx.snapshot, target))
    if obstacle:
        raise NotApplicableError(f"{target} is not restarted now: {obstacle}")
    before = held(setting_named(SETTING), target, ctx.snapshot)
    return propose(SETTING, target, float(before) + 1.0, ctx, finding_named(cause, ctx, target), reason)


def restart_obstacle(replica: Replica) -> str | None:
    """Why a restart would hurt now, or None. What is not known is an obstacle."""
    waiting, usage = replica.value(Signal.WAITING), replica.value(Signal.KV_USAGE_RATIO)
    if waiting is None or usage is None:
        return "its queue or KV use is unknown"
    if waiting > 0 or replica.amount(Signal.GATEWAY_QUEUE) > 0:
        return f"{waiting + replica.amount(Signal.GATEWAY_QUEUE):g} requests wait for it"
    if usage > CALM_KV_RATIO:
        return f"its KV use is {usage:.0%}, at most {CALM_KV_RATIO:.0%} counts as low traffic"
    return None
