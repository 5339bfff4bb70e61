"""Rules about what must be left of the pool."""

from harness.gate.case import Answer, Case, allow, deny
from harness.gate.condition import makes_progress
from harness.gate.history import HOUR_S, Past
from stack.setting import Effect, SettingClass
from stack.snapshot import FLEET, Signal

BINDS_RATIO = 0.8
"""Share of a limit from which what runs counts as held down by it: scrapes miss the moments at which it is reached."""


def healthy_replicas(case: Case) -> Answer:
    """Health is forward progress, not an open port."""
    healthy = {replica for replica in case.snapshot.replicas if makes_progress(case.snapshot, replica)}
    left = healthy - set(case.targets) if case.removes_capacity else healthy
    floor = case.policy.health.replicas_min if left != healthy else 1
    detail = f"{len(left)} of {len(case.snapshot.replicas)} replicas healthy after the change, at least {floor}"
    return allow(detail) if len(left) >= floor else deny(detail)


def enough_left(case: Case) -> Answer:
    """Too low a limit is an outage, whatever it protects from: neither one step nor several in a row go that far."""
    after, limits = case.action.after, case.policy.health
    lowers = Effect.PROTECTS in case.effects and Effect.MOVES_TRAFFIC not in case.effects
    if isinstance(after, str) or not lowers or not case.setting.integral:
        return allow("lowers no limit on requests")
    ran = _let_run(case)
    least = max(limits.limit_left_min_ratio * ran, limits.limit_left_min_requests)
    share = f"{limits.limit_left_min_ratio:.0%} of the {ran:g} it let run, and {limits.limit_left_min_requests}"
    detail = f"leaves {after:g} {case.setting.unit}, at least {least:g} ({share})"
    return allow(detail) if after >= least else deny(detail)


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


def _let_run(case: Case) -> float:
    """Requests that run under a limit on them: what runs, unless the limit binds; 0 for a limit on what waits.

    A limit that binds has squeezed what runs. Then what counts is the highest that lowerings within the hour have left.
    """
    before, limits = case.action.before, case.policy.health
    if isinstance(before, str) or Effect.LOWERS_MEMORY not in case.effects:
        return 0.0
    runs = max(_most(case, Signal.RUNNING, target) for target in case.targets)
    lately = (p for p in case.history.on(case.setting.name, case.action.target) if p.moved and p.direction < 0)
    left = [_left(p, limits.limit_left_min_ratio) for p in lately if p.written_s >= case.now_s - HOUR_S]
    return runs if runs < BINDS_RATIO * before else max([before, *left])


def _left(past: Past, ratio: float) -> float:
    """What a lowering left; the first step of an envelope's many could have gone down by half."""
    return float(past.after) if past.envelope is None else max(float(past.after), ratio * float(past.before))


def _most(case: Case, signal: Signal, target: str = FLEET) -> float:
    """The most of a gauge within the window; 0 where nothing tells it."""
    value, fact = case.known(signal, target), case.snapshot.fact(signal, target)
    return 0.0 if value is None or fact is None else max(value, fact.peak or 0.0)
