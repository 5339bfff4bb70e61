"""Rules about what must be left of the pool."""

from harness.gate.case import Answer, Case, allow, deny
from harness.gate.condition import makes_progress
from stack.setting import SettingClass
from stack.snapshot import FLEET, Signal


def healthy_replicas(case: Case) -> Answer:
    """Health is forward progress, not an open port."""
    healthy = {replica for replica in case.snapshot.replicas if makes_progress(case.snapshot, replica)}
    left = healthy - set(case.targets) if case.removes_capacity else healthy
    floor = case.policy.health.replicas_min if left != healthy else 1
    detail = f"{len(left)} of {len(case.snapshot.replicas)} replicas healthy after the change, at least {floor}"
    return allow(detail) if len(left) >= floor else deny(detail)


def idle_before_drain(case: Case) -> Answer:
    """A drain that protects needs no idle queue; one that only optimises does."""
    if case.setting.setting_class is SettingClass.C or not case.removes_capacity:
        return allow("takes no serving replica away")
    if case.sickness is not None:
        return allow(f"{case.action.target} is sick: {case.sickness}")
    queue = sum(_most(case, signal) for signal in (Signal.WAITING, Signal.GATEWAY_QUEUE))
    detail = f"{queue:g} requests waited in the window; {case.action.target} is sound, so none may"
    return allow(detail) if queue == 0 else deny(detail)


def restart_at_low_traffic(case: Case) -> Answer:
    """A restart loses a replica's cache and capacity for minutes."""
    if case.setting.setting_class is not SettingClass.C:
        return allow("no restart")
    if case.action.target == FLEET:
        return deny("replicas are restarted one at a time, not all at once")
    if case.queue > 0:
        return deny(f"{case.queue:g} requests waiting, a restart needs an empty queue")
    others = [replica for replica in case.snapshot.replicas if replica != case.action.target]
    use = sum(case.need(Signal.KV_USAGE_RATIO, replica) for replica in case.snapshot.replicas) / max(1, len(others))
    limit = case.policy.health.restart_kv_usage_max_ratio
    detail = f"KV use would be {use:.2f} on the other replicas, low traffic means at most {limit:g}"
    return allow(detail) if others and use <= limit else deny(detail)


def _most(case: Case, signal: Signal) -> float:
    """The most of a gauge within the window; 0 where nothing tells it."""
    value, fact = case.known(signal), case.snapshot.fact(signal)
    return 0.0 if value is None or fact is None else max(value, fact.peak or 0.0)
