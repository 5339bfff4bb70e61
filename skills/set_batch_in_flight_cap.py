"""Bound batch work beside interactive traffic."""

from typing import Annotated

from skills.argument import Cause, Reason, number_of
from skills.diagnose import finding_named
from skills.proposal import propose
from skills.skill import Result, SkillContext, skill
from stack.layer import Layer
from stack.snapshot import FLEET


@skill(effect="propose", layer=Layer.ROUTING, setting="batch_in_flight_cap")
def set_batch_in_flight_cap(
    ctx: SkillContext, cap: Annotated[float, number_of("batch_in_flight_cap")], cause: Cause, reason: Reason
) -> Result:
    """Propose how many requests of the batch class may be in flight per replica.

    Use it when batch work beside interactive traffic fills slots or KV blocks.

    Args:
        cap: batch requests per replica; 1000000 stands for no limit.
        cause: code of the finding in the present diagnosis that this answers.
        reason: why, in one sentence with the numbers that decided it.
    """
    return propose("batch_in_flight_cap", FLEET, cap, ctx, finding_named(cause, ctx), reason)
