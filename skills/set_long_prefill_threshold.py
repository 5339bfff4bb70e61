"""Bound how much of a step one long prompt takes."""

from typing import Annotated

from skills.argument import Cause, Reason, Target, number_of
from skills.diagnose import finding_named
from skills.proposal import propose
from skills.skill import Result, SkillContext, skill
from stack.layer import Layer


@skill(effect="propose", layer=Layer.BATCHING, setting="long_prefill_threshold_tokens")
def set_long_prefill_threshold(
    ctx: SkillContext,
    target: Target,
    tokens: Annotated[float, number_of("long_prefill_threshold_tokens")],
    cause: Cause,
    reason: Reason,
) -> Result:
    """Propose how many tokens of one long prompt are worked on in a step.

    Use it when a few long prompts hold up everything else.

    Args:
        target: name of the replica, or `fleet` for all.
        tokens: tokens; 0 switches the limit off.
        cause: code of the finding in the present diagnosis that this answers.
        reason: why, in one sentence with the numbers that decided it.
    """
    return propose("long_prefill_threshold_tokens", target, tokens, ctx, finding_named(cause, ctx, target), reason)
