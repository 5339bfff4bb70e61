"""Bound the queue."""

from typing import Annotated

from skills.argument import Cause, Reason, number_of
from skills.diagnose import finding_named
from skills.proposal import propose
from skills.skill import Result, SkillContext, skill
from stack.layer import Layer
from stack.snapshot import FLEET


@skill(effect="propose", layer=Layer.ROUTING, setting="queue_limit_requests")
def set_queue_limit(
    ctx: SkillContext, limit: Annotated[float, number_of("queue_limit_requests")], cause: Cause, reason: Reason
) -> Result:
    """Propose how many requests may queue per replica before new ones are refused with 503 and Retry-After.

    Use it when more arrives than can be served in time; refused requests count as failed.

    Args:
        limit: requests per replica; 1000000 stands for no limit.
        cause: code of the finding in the present diagnosis that this answers.
        reason: why, in one sentence with the numbers that decided it.
    """
    return propose("queue_limit_requests", FLEET, limit, ctx, finding_named(cause, ctx), reason)
