"""Refuse requests that are already too late."""

from typing import Annotated

from skills.argument import Cause, Reason, number_of
from skills.diagnose import finding_named
from skills.proposal import propose
from skills.skill import Result, SkillContext, skill
from stack.layer import Layer
from stack.snapshot import FLEET


@skill(effect="propose", layer=Layer.ROUTING, setting="deadline_shedding_ratio")
def set_deadline_shedding(
    ctx: SkillContext, ratio: Annotated[float, number_of("deadline_shedding_ratio")], cause: Cause, reason: Reason
) -> Result:
    """Propose to refuse requests that have waited so long that they cannot meet their TTFT limit any more.

    Under overload this saves the capacity that requests already lost would use; 0.6 to 0.8 is usual.

    Args:
        ratio: share of the TTFT limit after which a waiting request is refused; 1000000 stands for never.
        cause: code of the finding in the present diagnosis that this answers.
        reason: why, in one sentence with the numbers that decided it.
    """
    return propose("deadline_shedding_ratio", FLEET, ratio, ctx, finding_named(cause, ctx), reason)
