"""Rules about envelopes: what may be moved inside the one in force, and what may be done beside it."""

from harness.envelope.envelope import Leave, Place, PlaceKey
from harness.gate.case import Answer, Case, allow, deny
from harness.gate.history import direction
from harness.policy import Policy
from stack.setting import SettingClass

REPLACED = frozenset(
    {"step_size", "enough_history", "cooldown", "reversal", "hourly_budget", "daily_budget", "minimum_gain"}
)
"""Rules instead of which an envelope's own ranges, step and rate hold. All others hold inside it as everywhere."""


def inside_envelope(case: Case) -> Answer:
    """What a person allowed within bounds is done within them; everything else waits until that is over."""
    leave = case.history.leave
    if leave is None:
        return allow("no envelope is in force")
    name = f"envelope {leave.id}"
    covered = [key for key in case.places if leave.place(key)]
    if not covered:
        return _beside(case, name)
    if not case.as_move:
        return deny(f"{name} moves {covered[0][0]} on {covered[0][1]}; a change waits until it has ended")
    if len(covered) < len(case.places):
        return deny(f"{name} allows only {', '.join(target for _, target in covered)} of the {len(case.places)} places")
    problem = _over(case, leave) or next((found for key in covered if (found := _problem(case, key))), None)
    return deny(f"{name}: {problem}") if problem else allow(f"inside {name}, allowed by {leave.approved_by}")


def last_moves_s(policy: Policy) -> float:
    """How long before an envelope's end its last move may be made, so that a block is measured after it."""
    return policy.verification.settle_s + policy.verification.block_s


def _beside(case: Case, name: str) -> Answer:
    """Protection is never held up; what would blur the envelope's effect is."""
    if case.protective and case.setting.setting_class is SettingClass.A:
        return allow(f"a protective change beside {name}")
    return deny(f"{name} is in force: only moves inside it and protective changes are made")


def _over(case: Case, leave: Leave) -> str | None:
    if leave.closing:
        return "it is being closed: its former values are written back"
    since_s = case.now_s - (leave.ends_s - last_moves_s(case.policy))
    return None if since_s < 0 else f"its last moves were to be made until {since_s:.0f} s ago, to be judged since then"


def _problem(case: Case, key: PlaceKey) -> str | None:
    leave = case.history.leave
    if leave is None or (place := leave.place(key)) is None or (limits := leave.envelope.range_of(key)) is None:
        return f"{key[0]} on {key[1]} is not in it"
    before, after, unit = case.action.before, case.action.after, case.setting.unit
    if isinstance(after, str) or isinstance(before, str):
        return f"expected a number of {unit}, found {after!r}"
    if not abs(before - place.last) <= 1e-6 * max(1.0, abs(place.last)):
        return f"{key[0]} on {key[1]} was left at {place.last:g} and holds {before:g}: somebody else changed it"
    if not limits.low <= after <= limits.high:
        return f"{after:g} {unit} lies outside {limits.low:g} to {limits.high:g}"
    if not abs(after - before) <= limits.step:
        return f"a step of {abs(after - before):g} {unit}, at most {limits.step:g}"
    return _too_soon(case, place, limits.every_s, limits.back_after_s)


def _too_soon(case: Case, place: Place, every_s: float, back_after_s: float) -> str | None:
    if place.unsure_of is not None:
        return f"the last move of {place.setting} on {place.target} was not read back yet"
    if place.moved_s is None:
        return None
    ago_s, where = case.now_s - place.moved_s, f"{place.setting} on {place.target} was moved"
    if not ago_s >= every_s:
        return f"{where} {ago_s:.1f} s ago, every {every_s:g} s at most"
    turns = direction(case.action.before, case.action.after) * place.turn < 0
    return (
        f"{where} the other way {ago_s:.1f} s ago, back after {back_after_s:g} s"
        if turns and ago_s < back_after_s
        else None
    )
