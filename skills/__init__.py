"""What the model may call: read skills return findings, propose skills return an action. Neither acts."""

from skills.diagnose import INSPECTIONS
from skills.forecast_change import forecast_change
from skills.recall_episodes import recall_episodes
from skills.restart_worker import restart_worker
from skills.set_batch_in_flight_cap import set_batch_in_flight_cap
from skills.set_deadline_shedding import set_deadline_shedding
from skills.set_execution_profile import set_execution_profile
from skills.set_long_prefill_threshold import set_long_prefill_threshold
from skills.set_priority_policy import set_priority_policy
from skills.set_queue_limit import set_queue_limit
from skills.set_replica_concurrency_cap import set_replica_concurrency_cap
from skills.set_replica_state import set_replica_state
from skills.set_routing_policy import set_routing_policy
from skills.set_routing_weight import set_routing_weight
from skills.set_running_request_cap import set_running_request_cap
from skills.set_tokens_per_step import set_tokens_per_step
from skills.set_usable_kv_blocks import set_usable_kv_blocks
from skills.skill import Skill

SKILLS: tuple[Skill, ...] = (
    *INSPECTIONS,
    recall_episodes,
    forecast_change,
    set_routing_weight,
    set_replica_state,
    set_replica_concurrency_cap,
    set_routing_policy,
    set_queue_limit,
    set_deadline_shedding,
    set_priority_policy,
    set_batch_in_flight_cap,
    set_running_request_cap,
    set_tokens_per_step,
    set_long_prefill_threshold,
    set_usable_kv_blocks,
    set_execution_profile,
    restart_worker,
)
"""Every skill there is, in the order in which a model sees them."""
