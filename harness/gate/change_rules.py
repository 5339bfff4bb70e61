"""Rules about the change itself: is it a known, allowed, small enough step whose way back is known."""

import math

from harness.gate.case import Answer, Case, allow, deny
from stack.catalogue import UNLIMITED, in_words
from stack.setting import Scope
from stack.snapshot import FLEET


def target_exists(case: Case) -> Answer:
    """A change of something nobody sees cannot be judged."""
    target, replicas = case.action.target, sorted(case.snapshot.replicas)
    if case.setting.scope is Scope.POOL:
        return (
            allow("the pool") if target == FLEET else deny(f"{case.setting.name} applies to the pool, not to {target}")
        )
    if not replicas or (target != FLEET and target not in replicas):
        return deny(f"no replica {target!r}; replicas seen are {', '.join(replicas) or 'none'}")
    return allow(f"{target} is one of {len(replicas)} replicas" if target != FLEET else f"all {len(replicas)} replicas")


def within_bounds(case: Case) -> Answer:
    """The catalogue, the policy and what an engine was started with bound every value, whoever asks."""
    if not isinstance(case.action.after, (int, float, str)):
        return deny(f"expected a number or a name, found {type(case.action.after).__name__}")
    problem = case.setting.problem_with(case.action.after) or _policy_problem(case) or _engine_problem(case)
    if problem:
        return deny(problem)
    if case.action.after == case.action.before:
        return deny(f"{case.setting.name} already is {in_words(case.action.after)}")
    return allow(f"{in_words(case.action.after)} {case.setting.unit} is within bounds")


def _policy_problem(case: Case) -> str | None:
    after, bounds = case.action.after, case.policy.bounds.get(case.setting.name)
    if bounds is None or isinstance(after, str) or bounds.low <= after <= bounds.high:
        return None
    return f"the policy allows {bounds.low:g} to {bounds.high:g} {case.setting.unit}, not {after:g}"


def _engine_problem(case: Case) -> str | None:
    after, (low, high) = case.action.after, case.snapshot.span(case.setting.name, case.action.target)
    if isinstance(after, str) or ((low is None or after >= low) and (high is None or after <= high)):
        return None
    taken = f"{'any' if low is None else f'{low:g}'} to {'any' if high is None else f'{high:g}'}"
    return f"{case.action.target} takes {taken} {case.setting.unit} as it was started, not {after:g}"


def step_size(case: Case) -> Answer:
    """Small steps keep a mistake small. Putting a limit where none was is not a step from the stand-in for 'none'."""
    before, after, ratio = case.action.before, case.action.after, case.setting.step_ratio
    if isinstance(before, str) or isinstance(after, str) or ratio is None or before >= UNLIMITED:
        return allow("any step is allowed")
    step, longest = abs(after - before), max(ratio * abs(before), case.setting.step_min)
    detail = f"step of {step:g} {case.setting.unit}, at most {longest:g} from {before:g}"
    return allow(detail) if math.isfinite(step) and step <= longest else deny(detail)


def undo_known(case: Case) -> Answer:
    """The way back is the value in force; without it nothing is written."""
    held = case.snapshot.settings.get(case.setting.name, {})
    for target in case.targets:
        if target not in held:
            return deny(f"the value {case.setting.name} has on {target} was not read, so the way back is unknown")
        if held[target] != case.action.before:
            return deny(
                f"{target} holds {in_words(held[target])}, the proposal was made for {in_words(case.action.before)}"
            )
    return allow(f"undo writes {in_words(case.action.before)}") if case.targets else deny("nothing to write to")
