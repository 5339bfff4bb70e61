"""Give a replica a bigger or smaller share of new requests."""

from typing import Annotated

from skills.argument import Cause, Reason, Target, number_of
from skills.diagnose import finding_named
from skills.proposal import propose
from skills.skill import Result, SkillContext, skill
from stack.layer import Layer


@skill(effect="propose", layer=Layer.ROUTING, setting="routing_weight")
def set_routing_weight(
    ctx: SkillContext,
    target: Target,
    weight: Annotated[float, number_of("routing_weight")],
    cause: Cause,
    reason: Reason,
) -> Result:
    """Propose a replica's share of new requests, as points against its peers'.

    Use it to send a slow or hot replica less, or to give back what nothing takes away any more.

    Args:
        target: name of the replica.
        weight: points; 100 is normal, 0 sends nothing new.
        cause: code of the finding in the present diagnosis that this answers.
        reason: why, in one sentence with the numbers that decided it.
    """
    return propose("routing_weight", target, weight, ctx, finding_named(cause, ctx, target), reason)
