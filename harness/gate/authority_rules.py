"""Rules about authority: which settings are ours to change, how far at first, and who decides."""

from harness.gate.case import Answer, Case, allow, ask, deny
from harness.mode import Mode
from harness.outcome import Ending
from stack.setting import Scope, SettingClass, Value
from stack.snapshot import FLEET


def known_setting(case: Case) -> Answer:
    """What is not in the catalogue has no bounds, no class and no way back."""
    return allow(f"{case.setting.name} is class {case.setting.setting_class}")


def enabled_setting(case: Case) -> Answer:
    """Authority is given per setting, by name."""
    if case.setting.setting_class is SettingClass.D:
        return deny(f"{case.setting.name} is class D: never changed by the agent")
    if case.setting.name not in case.policy.enabled:
        return deny(
            f"{case.setting.name} is not enabled; enabled are {', '.join(sorted(case.policy.enabled)) or 'none'}"
        )
    return allow(f"{case.setting.name} is enabled")


def sole_controller(case: Case) -> Answer:
    """Two controllers of one setting fight: what another one owns is not ours."""
    owner = case.policy.owned_elsewhere.get(case.setting.name)
    return deny(f"{case.setting.name} is controlled by {owner}") if owner else allow("no other controller is named")


def untainted(case: Case) -> Answer:
    """Text from outside may steer a model; what cannot be taken back at once is then not its to choose."""
    kind = case.setting.setting_class
    if not case.action.tainted:
        return allow("not chosen by a model that read text from outside")
    if kind is SettingClass.C:
        return deny("class C, chosen by a model that read text from outside: a person may ask for it without one")
    if kind is SettingClass.B:
        return ask("class B, chosen by a model that read text from outside: a person decides")
    return allow(f"class {kind}: a model may choose it")


def blast_radius(case: Case) -> Answer:
    """The first time a setting is tried, little is at stake; it widens once it was kept."""
    name, limits = case.setting.name, case.policy.blast
    if any(p.setting == name and p.ending is Ending.KEPT for p in case.history.past):
        return allow(f"{name} was kept within the last day")
    if case.setting.scope is Scope.POOL:
        return allow(f"{name} applies to the pool as a whole, as one change")
    if case.action.target == FLEET and name not in limits.fleet_wide_first:
        return deny(f"{name} was not kept on one replica yet, so not on all {len(case.targets)} at once")
    if case.sickness is not None and case.takes_away:
        return allow(f"{case.action.target} is to be spared: {case.sickness}")
    moved, limit = _moved_share(case), _most_share(case)
    detail = f"moves {moved:.0%} of the traffic, at most {limit:.0%} the first time"
    return allow(detail) if moved <= limit else deny(detail)


def authority(case: Case) -> Answer:
    """How much the loop may do by itself."""
    kind = case.setting.setting_class
    if case.mode is Mode.SHADOW:
        return ask("shadow mode: recorded, never executed")
    if case.leave is not None:
        return allow(f"{case.leave.approved_by} allowed it with envelope {case.leave.id}")
    if case.mode is Mode.APPROVE or kind is not SettingClass.A:
        asked = "approve mode: a person decides every change"
        return ask(asked if case.mode is Mode.APPROVE else f"class {kind}: a person decides in every mode")
    name = case.setting.name
    if case.simulated or name in case.policy.vouched:
        return allow("auto mode: class A is done without asking")
    if name in case.history.earned:
        return allow(f"auto mode: the shadow record of {name} passes the bar")
    return ask(f"the shadow record of {name} on this stack does not pass the bar yet: a person decides")


def _most_share(case: Case) -> float:
    """Weights can move a little; a drain cannot be smaller than a replica, whose fair share is always within reach."""
    limit = case.policy.blast.traffic_moved_max_ratio
    if case.setting.name == "routing_weight" and not case.takes_away:
        return limit
    return max(limit, 1.0 / max(1, len(case.snapshot.replicas)) + 1e-9)


def _moved_share(case: Case) -> float:
    """Share of the fleet's traffic that goes elsewhere, by routing weights; 0 for what routes nothing."""
    weights = _weights(case)
    drained = {name for name, state in case.snapshot.settings.get("replica_state", {}).items() if state == "drain"}
    before = {name: 0.0 if name in drained else weight for name, weight in weights.items()}
    if case.takes_away:
        after = before | dict.fromkeys(case.targets, 0.0)
    elif case.setting.name == "routing_weight":
        after = before | dict.fromkeys(case.targets, _number(case.action.after))
    elif case.setting.name == "replica_state":
        after = before | {name: weights[name] for name in case.targets}
    else:
        return 0.0
    total, left = sum(before.values()) or 1.0, sum(after.values()) or 1.0
    return sum(abs(after[name] / left - before[name] / total) for name in weights) / 2


def _weights(case: Case) -> dict[str, float]:
    """Every replica's weight; equal ones where they were not all read."""
    told = case.snapshot.settings.get("routing_weight", {})
    known = all(name in told for name in case.snapshot.replicas)
    return {name: _number(told[name]) if known else 1.0 for name in case.snapshot.replicas}


def _number(value: Value) -> float:
    if isinstance(value, str):
        raise TypeError(f"a weight must be a number, found {value!r}")
    return float(value)
