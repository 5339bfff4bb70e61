"""Choose how many requests run at once."""

from typing import Annotated

from skills.argument import Cause, Reason, Target, number_of
from skills.diagnose import finding_named
from skills.proposal import propose
from skills.skill import Result, SkillContext, skill
from stack.layer import Layer


@skill(effect="propose", layer=Layer.BATCHING, setting="running_request_cap")
def set_running_request_cap(
    ctx: SkillContext,
    target: Target,
    cap: Annotated[float, number_of("running_request_cap")],
    cause: Cause,
    reason: Reason,
) -> Result:
    """Propose how many requests an engine runs at once.

    Raise it when the cap binds while KV is free; lower it against preemptions. Under KV pressure it is never raised.

    Args:
        target: name of the replica, or `fleet` for all.
        cap: requests.
        cause: code of the finding in the present diagnosis that this answers.
        reason: why, in one sentence with the numbers that decided it.
    """
    return propose("running_request_cap", target, cap, ctx, finding_named(cause, ctx, target), reason)
