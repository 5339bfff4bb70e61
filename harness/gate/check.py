"""The gate: a pure function from an action and its situation to a verdict, closed by default."""

from collections.abc import Callable

from harness.action import Action
from harness.gate.authority_rules import (
    authority,
    blast_radius,
    enabled_setting,
    known_setting,
    sole_controller,
    untainted,
)
from harness.gate.case import Answer, Case, decided
from harness.gate.change_rules import step_size, target_exists, undo_known, within_bounds
from harness.gate.envelope_rules import REPLACED, inside_envelope
from harness.gate.evidence_rules import enough_history, fresh_facts, fresh_snapshot
from harness.gate.failure_rules import failed_value, no_drift, refused_proposals, reversal, trip
from harness.gate.health_rules import enough_left, healthy_replicas, idle_before_drain, restart_at_low_traffic
from harness.gate.history import History
from harness.gate.pace_rules import cooldown, daily_budget, hourly_budget, not_frozen, one_settling
from harness.gate.signature_rules import latency_headroom, memory_headroom, minimum_gain
from harness.gate.source_rules import corroborated, sane_clock, sound_series, sources_agree
from harness.mode import Mode
from harness.policy import Policy
from harness.verdict import RuleResult, Ruling, Verdict
from stack.snapshot import Snapshot

RULES: tuple[Callable[[Case], Answer], ...] = (
    known_setting,
    enabled_setting,
    sole_controller,
    untainted,
    target_exists,
    within_bounds,
    step_size,
    undo_known,
    sane_clock,
    fresh_snapshot,
    fresh_facts,
    sound_series,
    sources_agree,
    corroborated,
    enough_history,
    not_frozen,
    no_drift,
    inside_envelope,
    one_settling,
    cooldown,
    reversal,
    failed_value,
    hourly_budget,
    daily_budget,
    refused_proposals,
    trip,
    healthy_replicas,
    enough_left,
    idle_before_drain,
    restart_at_low_traffic,
    blast_radius,
    memory_headroom,
    latency_headroom,
    minimum_gain,
    authority,
)


def check(
    action: Action,
    snapshot: Snapshot,
    history: History,
    policy: Policy,
    *,
    mode: Mode,
    now_s: float,
    simulated: bool = False,
    as_move: bool = False,
) -> Verdict:
    """Every rule's answer to `action` in this situation. No side effects; equal inputs give equal verdicts.

    Args:
        action: the candidate change.
        snapshot: the newest facts.
        history: what was done lately.
        policy: limits.
        mode: how much the loop may do by itself.
        now_s: stack time.
        simulated: whether the stack is the simulated one, which needs no shadow record for `auto`.
        as_move: it is to be made as a move, if the envelope in force covers it; a change there is denied.
    """
    case = Case(action, snapshot, history, policy, mode, now_s, simulated, as_move)
    return Verdict(tuple(_result(rule, case) for rule in RULES))


def _result(rule: Callable[[Case], Answer], case: Case) -> RuleResult:
    """A rule's answer, unless the envelope whose move it is has bounds instead of it."""
    if case.leave is not None and rule.__name__ in REPLACED:
        return RuleResult(rule.__name__, Ruling.ALLOW, f"envelope {case.leave.id} has bounds of its own")
    return decided(rule, case)
