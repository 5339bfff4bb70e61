"""Rules about what went wrong before: reversals, rollbacks, hard stops, refusals, and others at the same knobs."""

from collections.abc import Mapping

from harness.action import AGENT
from harness.gate.case import Answer, Case, allow, ask, deny
from harness.gate.history import History, Past, crowded, direction
from harness.limits import Pace
from harness.outcome import Ending
from stack.catalogue import in_words, setting_named
from stack.setting import Scope, Value
from stack.snapshot import FLEET

SAME_RATIO = 0.01
"""Two values closer than this are one and the same try."""


def no_drift(case: Case) -> Answer:
    """Where the stack does not hold what we left, somebody else is at work on it: stand down."""
    stand_down_s = case.policy.pace.stand_down_s
    for (name, target), (left, touched_s) in _left(case).items():
        held = case.snapshot.settings.get(name, {}).get(target)
        if held is None or _alike(held, left, 1e-6) or case.now_s - touched_s > stand_down_s:
            continue
        ago_s = case.now_s - touched_s
        return deny(
            f"{name} on {target} was left at {in_words(left)} {ago_s:.0f} s ago and holds {in_words(held)}: somebody "
            f"else changed it, no change until {stand_down_s:g} s after ours"
        )
    return allow("the stack holds what was left")


def reversal(case: Case) -> Answer:
    """A setting that is moved to and fro has no right value here; leave it alone for a while."""
    pace, name, target = case.policy.pace, case.setting.name, case.action.target
    times_s = case.history.reversal_times_s(name, target)
    turns = crowded(times_s, pace.reversals_per_hour_max, case.now_s, pace.reversal_freeze_s)
    if turns:
        return deny(f"{name} on {target} reversed {turns} times, left alone for {pace.reversal_freeze_s:g} s")
    if case.protective:
        return allow("a protective change may reverse")
    against = [p for p in case.history.on(name, target) if _turns_back(case, p)]
    if any(p.in_probation for p in against):
        return deny("the move the other way is not judged yet, and is not taken back before that")
    if against:
        ago_s = case.now_s - against[-1].written_s
        return deny(f"moved the other way {ago_s:.0f} s ago, no reversal within {pace.reversal_s:g} s")
    return allow(f"no reversal within {pace.reversal_s:g} s")


def trip(case: Case) -> Answer:
    """After failures a person decides."""
    pace = case.policy.pace
    failed = crowded(case.history.rollback_times_s(), pace.rollbacks_per_hour_max, case.now_s, pace.trip_s)
    if failed:
        return ask(f"{failed} rollbacks within an hour: a person decides for {pace.trip_s:g} s after the last")
    return allow(f"fewer than {pace.rollbacks_per_hour_max} rollbacks within any hour of the last {pace.trip_s:g} s")


def failed_value(case: Case) -> Answer:
    """What broke something at once is not tried again on the same day."""
    name, after, hold_s = case.setting.name, case.action.after, case.policy.pace.hard_stop_deny_s
    for p in case.history.on(name, case.action.target):
        if p.hard_stopped and case.now_s - p.touched_s < hold_s and _alike(after, p.after, SAME_RATIO):
            ago_s = case.now_s - p.touched_s
            return deny(f"{in_words(after)} was undone by a hard stop {ago_s:.0f} s ago, not again within {hold_s:g} s")
    return allow("no hard stop after this value")


def refused_proposals(case: Case) -> Answer:
    """A planner whose proposals are refused again and again is paused; people are not."""
    pace, refused = case.policy.pace, refusals(case.history, case.policy.pace, case.now_s)
    if case.action.requested_by != AGENT or not refused:
        return allow(f"fewer than {pace.refusals_per_hour_max} of the planner's proposals were refused within an hour")
    return deny(f"{refused} proposals were refused within an hour, the planner pauses for {pace.refusal_pause_s:g} s")


def refusals(history: History, pace: Pace, now_s: float) -> int:
    """How many refusals within an hour pause the planner now; 0 when it may go on."""
    return crowded(history.refused_s, pace.refusals_per_hour_max, now_s, pace.refusal_pause_s)


def _turns_back(case: Case, p: Past) -> bool:
    """Whether the change would take back a move that stands and is recent, or not judged yet."""
    wanted = direction(case.action.before, case.action.after)
    recent = case.now_s - p.written_s < case.policy.pace.reversal_s
    return p.moved and p.direction * wanted < 0 and (recent or p.in_probation)


def _left(case: Case) -> Mapping[tuple[str, str], tuple[Value, float]]:
    """By setting and target the value that our last write there left, and when; nothing where a person took over."""
    left: dict[tuple[str, str], tuple[Value, float]] = {}
    for p in sorted(case.history.past, key=lambda p: p.touched_s):
        for target in _places(case, p):
            if p.ending is Ending.NEEDS_PERSON:
                left.pop((p.setting, target), None)
            elif p.ending is not Ending.NOTHING_DONE:
                left[p.setting, target] = (p.after if p.moved else p.before), p.touched_s
    return left


def _places(case: Case, p: Past) -> tuple[str, ...]:
    everywhere = p.target == FLEET and setting_named(p.setting).scope is Scope.REPLICA
    return tuple(case.snapshot.replicas) if everywhere else (p.target,)


def _alike(one: Value, other: Value, ratio: float) -> bool:
    if isinstance(one, str) or isinstance(other, str):
        return one == other
    return abs(one - other) <= ratio * max(abs(one), abs(other), 1e-9)
