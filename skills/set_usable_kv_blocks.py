"""Choose how many KV blocks are usable."""

from typing import Annotated

from skills.argument import Cause, Reason, Target, number_of
from skills.diagnose import finding_named
from skills.proposal import propose
from skills.skill import Result, SkillContext, skill
from stack.layer import Layer


@skill(effect="propose", layer=Layer.CACHE, setting="usable_kv_blocks_ratio")
def set_usable_kv_blocks(
    ctx: SkillContext,
    target: Target,
    ratio: Annotated[float, number_of("usable_kv_blocks_ratio")],
    cause: Cause,
    reason: Reason,
) -> Result:
    """Propose the share of KV blocks that the scheduler may use.

    Give blocks back when they were held back; holding blocks back evicts cached prefixes.

    Args:
        target: name of the replica, or `fleet` for all.
        ratio: share of the blocks.
        cause: code of the finding in the present diagnosis that this answers.
        reason: why, in one sentence with the numbers that decided it.
    """
    return propose("usable_kv_blocks_ratio", target, ratio, ctx, finding_named(cause, ctx, target), reason)
