"""Take a replica out of rotation or put it back."""

from typing import Annotated

from skills.argument import Cause, Reason, Target, choice_of
from skills.diagnose import finding_named
from skills.proposal import propose
from skills.skill import Result, SkillContext, skill
from stack.layer import Layer


@skill(effect="propose", layer=Layer.ROUTING, setting="replica_state")
def set_replica_state(
    ctx: SkillContext, target: Target, state: Annotated[str, choice_of("replica_state")], cause: Cause, reason: Reason
) -> Result:
    """Propose to take a replica out of rotation, or to put it back.

    Draining lets running answers finish and sends nothing new. Its peers must have room for its share.

    Args:
        target: name of the replica.
        state: `drain` or `ready`.
        cause: code of the finding in the present diagnosis that this answers.
        reason: why, in one sentence with the numbers that decided it.
    """
    return propose("replica_state", target, state, ctx, finding_named(cause, ctx, target), reason)
