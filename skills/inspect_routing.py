"""Is traffic spread as it should be: a lost, slow or hot replica, odd weights, or a queue at the gateway?"""

from harness.diagnosis import Finding
from skills.balance import balance_findings
from skills.gateway_queue import gateway_findings
from skills.lost_replica import lost_finding
from skills.replica import replicas_of
from skills.skill import SkillContext, skill
from skills.slow_replica import slow_finding
from stack.layer import Layer


@skill(effect="read", layer=Layer.ROUTING)
def inspect_routing(ctx: SkillContext) -> tuple[Finding, ...]:
    """Compare replicas: lost, slow at no more work than its peers, hot, oddly weighted; and queues at the gateway."""
    replicas = replicas_of(ctx.snapshot)
    lost = [found for replica in replicas if (found := lost_finding(replica)) is not None]
    gone = {finding.target for finding in lost}
    alive = [replica for replica in replicas if replica.name not in gone]
    slow = [found for replica in alive if (found := slow_finding(replica, ctx)) is not None]
    explained = gone | {finding.target for finding in slow}
    return (*lost, *slow, *balance_findings(alive, ctx, explained), *gateway_findings(ctx))
