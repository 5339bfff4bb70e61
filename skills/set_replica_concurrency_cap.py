"""Bound how many requests are inside a replica."""

from typing import Annotated

from skills.argument import Cause, Reason, Target, number_of
from skills.diagnose import finding_named
from skills.proposal import propose
from skills.skill import Result, SkillContext, skill
from stack.layer import Layer


@skill(effect="propose", layer=Layer.ROUTING, setting="replica_concurrency_cap")
def set_replica_concurrency_cap(
    ctx: SkillContext,
    target: Target,
    cap: Annotated[float, number_of("replica_concurrency_cap")],
    cause: Cause,
    reason: Reason,
) -> Result:
    """Propose how many requests the gateway lets into a replica at once; the others wait at the gateway.

    Lower it against KV pressure or a pile-up on one replica; raise it when the gateway queues while engines have room.

    Args:
        target: name of the replica, or `fleet` for all.
        cap: requests; 1000000 stands for no limit.
        cause: code of the finding in the present diagnosis that this answers.
        reason: why, in one sentence with the numbers that decided it.
    """
    return propose("replica_concurrency_cap", target, cap, ctx, finding_named(cause, ctx, target), reason)
