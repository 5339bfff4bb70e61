"""Choose how the gateway picks a replica."""

from typing import Annotated

from skills.argument import Cause, Reason, choice_of
from skills.diagnose import finding_named
from skills.proposal import propose
from skills.skill import Result, SkillContext, skill
from stack.layer import Layer
from stack.snapshot import FLEET


@skill(effect="propose", layer=Layer.ROUTING, setting="routing_policy")
def set_routing_policy(
    ctx: SkillContext, policy: Annotated[str, choice_of("routing_policy")], cause: Cause, reason: Reason
) -> Result:
    """Propose how the gateway picks a replica.

    Least outstanding goes around slow and hot replicas; prefix-aware and session hash follow cached prefixes.

    Args:
        policy: name of the policy.
        cause: code of the finding in the present diagnosis that this answers.
        reason: why, in one sentence with the numbers that decided it.
    """
    return propose("routing_policy", FLEET, policy, ctx, finding_named(cause, ctx), reason)
