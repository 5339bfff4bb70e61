"""What a change is meant to make better, and where that is looked for."""

from dataclasses import dataclass

from harness.action import Action
from stack.setting import Effect, Scope
from stack.snapshot import FLEET

_END_TO_END = ("slo_share", "e2e_per_token_s", "itl_mean_s")
_WAITING = ("slo_share", "served_share", "queue_mean_s", "ttft_mean_s", "e2e_per_token_s")
_PRESSURE = ("slo_share", "served_share", "preemptions_share", "e2e_per_token_s", "ttft_mean_s")
_PROMISE = ("slo_share",)
_START = ("slo_share", "ttft_mean_s", "e2e_per_token_s")

GOALS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "routing_weight": (_END_TO_END, _END_TO_END),
    "replica_state": (_END_TO_END, _END_TO_END),
    "routing_policy": (_START, _START),
    "replica_concurrency_cap": (_WAITING, _PRESSURE),
    "running_request_cap": (_WAITING, _PRESSURE),
    "batch_in_flight_cap": (_WAITING, _START),
    "queue_limit_requests": (_PROMISE, _PROMISE),
    "deadline_shedding_ratio": (_PROMISE, _PROMISE),
    "priority_policy": (_START, _START),
    "tokens_per_step": (_START, _END_TO_END),
    "long_prefill_threshold_tokens": (_END_TO_END, _END_TO_END),
    "usable_kv_blocks_ratio": (_PRESSURE, _PRESSURE),
    "execution_profile": (_END_TO_END, _END_TO_END),
    "worker_generation": (_END_TO_END, _END_TO_END),
}
"""Goal metrics per setting: when the value is raised (or a choice changed), and when it is lowered."""


@dataclass(frozen=True)
class Goal:
    """What must improve for the change to be kept.

    Attributes:
        metrics: one of these must improve measurably.
        target: the replica whose metrics are judged, or the fleet for what moves traffic or concerns the pool.
        per_replica: whether untouched replicas can serve as controls.
        shifted: replicas whose share of the traffic is changed; empty for what moves no traffic between replicas.
        sheds: refusing requests is the declared purpose, so that the goal counts all that were offered.
    """

    metrics: tuple[str, ...]
    target: str = FLEET
    per_replica: bool = False
    shifted: tuple[str, ...] = ()
    sheds: bool = False


def goal_of(action: Action) -> Goal:
    """The goal of a change, by its setting and direction; see GOALS."""
    before, after, setting = action.before, action.after, action.declaration
    lowered = not isinstance(before, str) and not isinstance(after, str) and after < before
    raised_goal, lowered_goal = GOALS.get(action.setting, (_END_TO_END, _END_TO_END))
    alone = setting.scope is Scope.REPLICA and action.target != FLEET
    per_replica = alone and Effect.MOVES_TRAFFIC not in action.certain_effects
    return Goal(
        metrics=lowered_goal if lowered else raised_goal,
        target=action.target if per_replica else FLEET,
        per_replica=per_replica,
        shifted=(action.target,) if alone and Effect.MOVES_TRAFFIC in action.certain_effects else (),
        sheds=Effect.SHEDS_LOAD in action.certain_effects,
    )
