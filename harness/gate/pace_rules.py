"""Rules about pace: one change at a time, no flapping, and less authority after failures."""

from harness.gate.case import Answer, Case, allow, ask, deny
from harness.gate.history import HOUR_S, Past, direction
from stack.setting import SettingClass


def not_frozen(case: Case) -> Answer:
    """A freeze halts every new change; undoing goes on."""
    return (
        deny(f"changes are frozen: {case.history.frozen}") if case.history.frozen else allow("changes are not frozen")
    )


def one_settling(case: Case) -> Answer:
    """Two changes settling at once cannot be told apart; a few may be in probation behind it."""
    settling = [p for p in case.history.past if p.settling]
    probation = [p for p in case.history.past if p.in_probation]
    if settling:
        return deny(f"{settling[0].setting} on {settling[0].target} is still settling")
    if probation and case.setting.setting_class is not SettingClass.A:
        return deny(f"{len(probation)} change(s) in probation: only class A may follow")
    limit = case.policy.pace.in_probation_max
    detail = f"{len(probation)} change(s) in probation, at most {limit}"
    return allow(detail) if len(probation) < limit else deny(detail)


def cooldown(case: Case) -> Answer:
    """Metrics need a window to show the last write before the next one."""
    if case.protective:
        return allow("a protective change does not wait")
    floor_s = case.policy.pace.cooldown_floor_s
    wait_s = max(floor_s, case.policy.pace.cooldown_s[case.setting.setting_class.value])
    last = _since_s(case, case.history.past)
    same = _since_s(case, tuple(case.history.on(case.setting.name, case.action.target)))
    if last is not None and last < floor_s:
        return deny(f"last write {last:.0f} s ago, floor {floor_s:g} s")
    if same is not None and same < wait_s:
        return deny(f"{case.setting.name} on {case.action.target} was written {same:.0f} s ago, cooldown {wait_s:g} s")
    return allow(f"no write within {floor_s:g} s, none of this setting here within {wait_s:g} s")


def reversal(case: Case) -> Answer:
    """A setting that is moved to and fro has no right value here; leave it alone for a while."""
    pace, name, target = case.policy.pace, case.setting.name, case.action.target
    turns = case.history.reversal_times_s(name, target)
    recent = [t for t in turns if t >= case.now_s - pace.reversal_freeze_s]
    crowded = any(sum(0 <= late - t <= HOUR_S for late in recent) >= pace.reversals_per_hour_max for t in recent)
    if crowded:
        return deny(f"{name} on {target} reversed {len(recent)} times, left alone for {pace.reversal_freeze_s:g} s")
    if case.protective:
        return allow("a protective change may reverse")
    wanted = direction(case.action.before, case.action.after)
    against = [
        p
        for p in case.history.on(name, target)
        if p.moved and p.direction * wanted < 0 and case.now_s - p.written_s < pace.reversal_s
    ]
    if against:
        ago_s = case.now_s - against[-1].written_s
        return deny(f"moved the other way {ago_s:.0f} s ago, no reversal within {pace.reversal_s:g} s")
    return allow(f"no reversal within {pace.reversal_s:g} s")


def hourly_budget(case: Case) -> Answer:
    """A loop that must change much is wrong about something."""
    kind = case.setting.setting_class
    used = sum(p.setting_class is kind for p in case.history.since(case.now_s - HOUR_S))
    limit = case.policy.pace.per_hour[kind.value]
    detail = f"{used} class {kind} change(s) in the last hour, at most {limit}"
    return allow(detail) if used < limit else deny(detail)


def trip(case: Case) -> Answer:
    """After failures a person decides."""
    failed, limit = case.history.rollbacks(case.now_s), case.policy.pace.rollbacks_per_hour_max
    detail = f"{failed} rollback(s) in the last hour, a person decides from {limit} on"
    return ask(detail) if failed >= limit else allow(detail)


def _since_s(case: Case, past: tuple[Past, ...]) -> float | None:
    return min((case.now_s - p.touched_s for p in past), default=None)
