"""Rules about pace: one change at a time, and not many of them."""

from harness.gate.case import Answer, Case, allow, deny
from harness.gate.history import DAY_S, HOUR_S, Past
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
    """Metrics need a window to show the last write before the next one; protection waits for none but its own."""
    pace, floor_s = case.policy.pace, case.policy.pace.cooldown_floor_s
    wait_s = floor_s if case.protective else max(floor_s, pace.cooldown_s[case.setting.setting_class.value])
    last = None if case.protective else _since_s(case, case.history.past)
    same = _since_s(case, tuple(case.history.on(case.setting.name, case.action.target)))
    if last is not None and last < floor_s:
        return deny(f"last write {last:.0f} s ago, floor {floor_s:g} s")
    if same is not None and same < wait_s:
        return deny(f"{case.setting.name} on {case.action.target} was written {same:.0f} s ago, cooldown {wait_s:g} s")
    others = "a protective change waits for no other" if case.protective else f"no write within {floor_s:g} s"
    return allow(f"{others}, none of this setting here within {wait_s:g} s")


def hourly_budget(case: Case) -> Answer:
    """A loop that must change much is wrong about something."""
    kind = case.setting.setting_class
    used = sum(p.setting_class is kind for p in case.history.since(case.now_s - HOUR_S))
    limit = case.policy.pace.per_hour[kind.value]
    detail = f"{used} class {kind} change(s) in the last hour, at most {limit}"
    return allow(detail) if used < limit else deny(detail)


def daily_budget(case: Case) -> Answer:
    """A loop that has changed much all day is not finding a better state."""
    used, limit = len(tuple(case.history.since(case.now_s - DAY_S))), case.policy.pace.per_day
    detail = f"{used} change(s) in the last day, at most {limit}"
    return allow(detail) if used < limit else deny(detail)


def _since_s(case: Case, past: tuple[Past, ...]) -> float | None:
    return min((case.now_s - p.touched_s for p in past), default=None)
