"""The gate: a pure function from an action and its situation to a verdict, closed by default."""

from collections.abc import Callable

from harness.action import Action
from harness.gate.case import Answer, Case, allow, ask
from harness.gate.change_rules import enabled_setting, step_size, target_exists, undo_known, within_bounds
from harness.gate.evidence_rules import enough_history, fresh_facts, fresh_snapshot
from harness.gate.health_rules import healthy_replicas, restart_at_low_traffic
from harness.gate.history import History
from harness.gate.pace_rules import cooldown, hourly_budget, not_frozen, one_settling, reversal, trip
from harness.gate.signature_rules import latency_headroom, memory_headroom, minimum_gain
from harness.mode import Mode
from harness.policy import Policy
from harness.verdict import RuleResult, Ruling, Verdict
from stack.errors import StackError, UnknownSettingError
from stack.setting import SettingClass
from stack.snapshot import Snapshot


def authority(case: Case) -> Answer:
    """How much the loop may do by itself."""
    kind = case.setting.setting_class
    if case.mode is Mode.SHADOW:
        return ask("shadow mode: recorded, never executed")
    if case.mode is Mode.APPROVE:
        return ask("approve mode: a person decides every change")
    if kind is not SettingClass.A:
        return ask(f"class {kind}: a person decides in every mode")
    name = case.setting.name
    if case.simulated or name in case.policy.vouched:
        return allow("auto mode: class A is done without asking")
    if name in case.history.earned:
        return allow(f"auto mode: the shadow record of {name} passes the bar")
    return ask(f"the shadow record of {name} on this stack does not pass the bar yet: a person decides")


RULES: tuple[Callable[[Case], Answer], ...] = (
    enabled_setting,
    target_exists,
    within_bounds,
    step_size,
    undo_known,
    fresh_snapshot,
    fresh_facts,
    enough_history,
    not_frozen,
    one_settling,
    cooldown,
    reversal,
    hourly_budget,
    trip,
    healthy_replicas,
    restart_at_low_traffic,
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
    """
    case = Case(action, snapshot, history, policy, mode, now_s, simulated)
    try:
        case.setting  # noqa: B018 - the look-up itself is the check
    except UnknownSettingError as error:
        return Verdict((RuleResult("known_setting", Ruling.DENY, str(error)),))
    return Verdict(tuple(_result(rule, case) for rule in RULES))


def _result(rule: Callable[[Case], Answer], case: Case) -> RuleResult:
    """A rule that cannot be decided denies."""
    try:
        ruling, detail = rule(case)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, StackError) as error:
        return RuleResult(rule.__name__, Ruling.DENY, f"could not be decided: {error}")
    return RuleResult(rule.__name__, ruling, detail)
