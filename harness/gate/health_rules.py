"""Rules about what must be left of the pool."""

from harness.gate.case import Answer, Case, allow, deny
from stack.setting import SettingClass
from stack.snapshot import FLEET, Signal


def healthy_replicas(case: Case) -> Answer:
    """Health is forward progress, not an open port."""
    healthy = {replica for replica in case.snapshot.replicas if _makes_progress(case, replica)}
    left = healthy - set(case.targets) if case.removes_capacity else healthy
    floor = case.policy.health.replicas_min if case.removes_capacity else 1
    detail = f"{len(left)} of {len(case.snapshot.replicas)} replicas healthy after the change, at least {floor}"
    return allow(detail) if len(left) >= floor else deny(detail)


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


def _makes_progress(case: Case, replica: str) -> bool:
    if case.known(Signal.UP, replica) == 0 or case.known(Signal.ROUTING_WEIGHT, replica) == 0:
        return False
    if case.snapshot.settings.get("replica_state", {}).get(replica) == "drain":
        return False
    work = case.known(Signal.RUNNING, replica)
    if work is None:
        return False
    idle = work + (case.known(Signal.WAITING, replica) or 0.0) == 0
    done = (Signal.GENERATION_TOKENS, Signal.PROMPT_TOKENS, Signal.FINISHED)
    return idle or any((case.known(signal, replica) or 0.0) > 0 for signal in done)
