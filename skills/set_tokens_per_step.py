"""Choose how big an engine step may be."""

from typing import Annotated

from skills.argument import Cause, Reason, Target, number_of
from skills.diagnose import finding_named
from skills.proposal import propose
from skills.skill import Result, SkillContext, skill
from stack.layer import Layer


@skill(effect="propose", layer=Layer.BATCHING, setting="tokens_per_step")
def set_tokens_per_step(
    ctx: SkillContext,
    target: Target,
    tokens: Annotated[float, number_of("tokens_per_step")],
    cause: Cause,
    reason: Reason,
) -> Result:
    """Propose how many tokens an engine step works on, prompts and answers together.

    Lower it (512 to 1536) when prefill starves running answers; raise it when prompts queue and answers are quick.

    Args:
        target: name of the replica, or `fleet` for all.
        tokens: tokens.
        cause: code of the finding in the present diagnosis that this answers.
        reason: why, in one sentence with the numbers that decided it.
    """
    return propose("tokens_per_step", target, tokens, ctx, finding_named(cause, ctx, target), reason)
