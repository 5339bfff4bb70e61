"""Choose how the engine executes."""

from typing import Annotated

from skills.argument import Cause, Reason, Target, choice_of
from skills.diagnose import finding_named
from skills.proposal import propose
from skills.skill import Result, SkillContext, skill
from stack.layer import Layer


@skill(effect="propose", layer=Layer.EXECUTION, setting="execution_profile")
def set_execution_profile(
    ctx: SkillContext,
    target: Target,
    profile: Annotated[str, choice_of("execution_profile")],
    cause: Cause,
    reason: Reason,
) -> Result:
    """Propose another execution profile; it takes a rolling restart, one replica at a time.

    Use no_speculation when drafts are almost never accepted, fp8_kv for twice the KV blocks.

    Args:
        target: name of the replica, or `fleet` for all.
        profile: name of the profile.
        cause: code of the finding in the present diagnosis that this answers.
        reason: why, in one sentence with the numbers that decided it.
    """
    return propose("execution_profile", target, profile, ctx, finding_named(cause, ctx, target), reason)
