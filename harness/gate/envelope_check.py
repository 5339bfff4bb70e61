"""The gate for envelopes: whether one may be put before a person, and opened. Pure, closed by default."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from harness.action import Action
from harness.envelope.envelope import Envelope, PlaceKey, Range
from harness.gate.authority_rules import enabled_setting, known_setting, sole_controller
from harness.gate.case import Answer, Case, allow, ask, decided, deny
from harness.gate.change_rules import target_exists, within_bounds
from harness.gate.evidence_rules import fresh_facts, fresh_snapshot
from harness.gate.failure_rules import no_drift, trip
from harness.gate.history import History
from harness.gate.pace_rules import not_frozen
from harness.gate.source_rules import sane_clock, sound_series, sources_agree
from harness.limits import EnvelopeLimits
from harness.mode import Mode
from harness.policy import Policy
from harness.verdict import RuleResult, Ruling, Verdict
from stack.catalogue import setting_named
from stack.setting import SettingClass
from stack.snapshot import Snapshot

EACH_END: tuple[Callable[[Case], Answer], ...] = (
    known_setting,
    enabled_setting,
    sole_controller,
    target_exists,
    within_bounds,
    sane_clock,
    fresh_snapshot,
    fresh_facts,
    sound_series,
    sources_agree,
    not_frozen,
    no_drift,
    trip,
)
"""Rules of single changes that every place of an envelope must keep at both ends of its range."""


@dataclass(frozen=True)
class EnvelopeCase:
    """One envelope in its situation; every rule is a pure function of it."""

    envelope: Envelope
    snapshot: Snapshot
    history: History
    policy: Policy
    mode: Mode
    now_s: float

    @property
    def limits(self) -> EnvelopeLimits:
        """What the policy says of envelopes."""
        return self.policy.envelope

    @property
    def places(self) -> tuple[PlaceKey, ...]:
        """Every place it would allow to move."""
        return self.envelope.places(tuple(sorted(self.snapshot.replicas)))

    def held(self, place: PlaceKey) -> object:
        """The value in force; None when it was not read."""
        return self.snapshot.settings.get(place[0], {}).get(place[1])


def check_envelope(
    envelope: Envelope, snapshot: Snapshot, history: History, policy: Policy, *, mode: Mode, now_s: float
) -> Verdict:
    """Every rule's answer. A person decides in every mode, so the best ruling is to ask. Arguments as for `check`."""
    case = EnvelopeCase(envelope, snapshot, history, policy, mode, now_s)
    whole = tuple(decided(rule, case) for rule in RULES)
    if any(result.ruling is Ruling.DENY for result in whole):
        return Verdict(whole)
    return Verdict((*whole, *(_worst_end(rule, case) for rule in EACH_END)))


def sound_ranges(case: EnvelopeCase) -> Answer:
    """Each range is narrow enough to be read, and about a number that can be taken back at once."""
    if not 1 <= len(case.envelope.ranges) <= case.limits.ranges_max:
        return deny(f"expected 1 to {case.limits.ranges_max} ranges, found {len(case.envelope.ranges)}")
    if len(case.envelope.guards) > case.limits.guards_max:
        return deny(f"expected at most {case.limits.guards_max} guards, found {len(case.envelope.guards)}")
    problem = next((found for one in case.envelope.ranges if (found := _range_problem(one, case.limits))), None)
    if problem:
        return deny(problem)
    covers = [one for place in case.places for one in case.envelope.ranges if one.covers(place)]
    if len(covers) != len(case.places) or not covers:
        return deny("two ranges cover one place" if covers else "it covers no place that is seen")
    return allow(f"{len(case.envelope.ranges)} range(s) over {len(case.places)} place(s)")


def undo_stored(case: EnvelopeCase) -> Answer:
    """The way back is what is in force; it must be known, and lie inside."""
    for place in case.places:
        held, limits = case.held(place), case.envelope.range_of(place)
        if isinstance(held, str) or not isinstance(held, (int, float)) or limits is None:
            return deny(f"the value {place[0]} has on {place[1]} was not read, so the way back is unknown")
        if not limits.low <= held <= limits.high:
            return deny(f"{place[0]} on {place[1]} holds {held:g}, outside {limits.low:g} to {limits.high:g}")
    return allow(f"{len(case.places)} value(s) in force are the way back")


def measurable(case: EnvelopeCase) -> Answer:
    """It lasts long enough to be judged as a whole, and not longer than a person remembers having allowed it."""
    plan, lasts_s = case.policy.verification, case.envelope.lasts_s
    least_s, most_s = plan.settle_s + plan.looks_s[0], case.limits.lasts_max_s
    if not (math.isfinite(lasts_s) and least_s <= lasts_s <= most_s):
        return deny(f"lasts {lasts_s:g} s, expected {least_s:g} (to be judged) to {most_s:g} s")
    needed_s, watched_s = case.policy.evidence.history_min_s, case.history.watched_s
    detail = f"watched for {watched_s:.0f} s, needed {needed_s:g} s"
    return allow(f"lasts {lasts_s:g} s; {detail}") if watched_s >= needed_s else deny(detail)


def nothing_else(case: EnvelopeCase) -> Answer:
    """What is on trial already would be blurred by it, and it by that."""
    if case.history.leave is not None:
        return deny(f"envelope {case.history.leave.id} is in force")
    trial = [p for p in case.history.past if p.settling or p.in_probation]
    return deny(f"{trial[0].setting} on {trial[0].target} is on trial") if trial else allow("nothing is on trial")


def guards_hold(case: EnvelopeCase) -> Answer:
    """A guard that cannot be seen guards nothing, and one that is broken already would end it at once."""
    for guard in case.envelope.guards:
        value = case.snapshot.value(guard.signal)
        if value is None or not math.isfinite(value) or not math.isfinite(guard.at_most):
            return deny(f"{guard.signal} is not measured, so it cannot be a guard")
        if value > guard.at_most:
            return deny(f"{guard.signal} is {value:g} already, above its guard of {guard.at_most:g}")
    return allow(f"{len(case.envelope.guards)} guard(s) beside the policy's hard stops")


def a_person(case: EnvelopeCase) -> Answer:
    """Leave to act without asking is given by a person, in every mode."""
    shadow = case.mode is Mode.SHADOW
    return ask("shadow mode: recorded, never opened" if shadow else "a person decides on every envelope")


RULES: tuple[Callable[[EnvelopeCase], Answer], ...] = (
    sound_ranges,
    undo_stored,
    measurable,
    nothing_else,
    guards_hold,
    a_person,
)


def _range_problem(one: Range, limits: EnvelopeLimits) -> str | None:
    declared, name = setting_named(one.setting), f"{one.setting} on {one.target}"
    numbers = (one.low, one.high, one.step, one.every_s, one.back_after_s)
    if declared.setting_class is not SettingClass.A or declared.choices:
        return f"{name}: expected a numeric setting of class A"
    if not all(math.isfinite(number) for number in numbers) or not one.low < one.high:
        return f"{name}: expected finite numbers and low below high, found {one.low:g} and {one.high:g}"
    if declared.integral and one.step < 1:
        return f"{name}: a step of {one.step:g}, expected at least 1, since only whole numbers are set"
    if not 0 < one.step <= one.high - one.low:
        return f"{name}: a step of {one.step:g}, expected more than 0 and at most the range's {one.high - one.low:g}"
    if not limits.every_min_s <= one.every_s <= one.back_after_s:
        rate = f"every {one.every_s:g} s and back after {one.back_after_s:g} s"
        return f"{name}: {rate}, expected at least {limits.every_min_s:g} s, and back not sooner"
    return None


def _worst_end(rule: Callable[[Case], Answer], whole: EnvelopeCase) -> RuleResult:
    """The rule's worst answer over all places and both ends of their ranges."""
    verdict = Verdict(tuple(decided(rule, case) for case in _ends(whole)))
    return (*verdict.hits, *verdict.rules)[0]


def _ends(whole: EnvelopeCase) -> Iterator[Case]:
    for place in whole.places:
        limits, held = whole.envelope.range_of(place), whole.held(place)
        for end in () if limits is None else (limits.low, limits.high):
            if held != end:
                action = _stand_in(place, held, end)
                yield Case(action, whole.snapshot, whole.history, whole.policy, whole.mode, whole.now_s)


def _stand_in(place: PlaceKey, held: object, end: float) -> Action:
    """The change to one end of a range, for rules that look at changes."""
    before = held if isinstance(held, (int, float)) else math.nan
    layer = setting_named(place[0]).layer
    return Action(setting=place[0], target=place[1], before=before, after=end, cause="envelope", layer=layer, reason="")
