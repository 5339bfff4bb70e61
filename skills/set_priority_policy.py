"""Choose who is served first."""

from typing import Annotated

from skills.argument import Cause, Reason, choice_of
from skills.diagnose import finding_named
from skills.proposal import propose
from skills.skill import Result, SkillContext, skill
from stack.layer import Layer
from stack.snapshot import FLEET


@skill(effect="propose", layer=Layer.ROUTING, setting="priority_policy")
def set_priority_policy(
    ctx: SkillContext, policy: Annotated[str, choice_of("priority_policy")], cause: Cause, reason: Reason
) -> Result:
    """Propose the order in which waiting requests are served.

    Class protects interactive traffic from batch work, short_first keeps long prompts from holding up short ones.

    Args:
        policy: name of the order.
        cause: code of the finding in the present diagnosis that this answers.
        reason: why, in one sentence with the numbers that decided it.
    """
    return propose("priority_policy", FLEET, policy, ctx, finding_named(cause, ctx), reason)
