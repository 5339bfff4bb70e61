"""Rules about the sources of the evidence: one sound series each, a clock that is right, and no contradiction."""

from harness.action import AGENT
from harness.gate.case import Answer, Case, allow, deny
from harness.gate.corroboration import signs_of_trouble
from stack.setting import SettingClass
from stack.snapshot import FLEET, Oddity, Signal


def sound_series(case: Case) -> Answer:
    """What two sources say under one name, or out of order, is no account of either; a restart breaks a window."""
    for name, oddity in sorted(case.snapshot.oddities.items()):
        if oddity is Oddity.RESTARTED and case.protective:
            continue
        return deny(f"{name}: {oddity.value}")
    return allow("one series per signal and replica, in order")


def sane_clock(case: Case) -> Answer:
    """With a clock that was set, nobody can say how long ago anything was: a past must be measured on it first."""
    steady_s, needed_s = case.history.clock_steady_s, case.policy.evidence.history_min_s
    if not steady_s >= needed_s:
        return deny(f"the clock was set {steady_s:.0f} s ago, and must run steadily for {needed_s:g} s before a change")
    skew_s, seen_s = case.policy.evidence.clock_skew_max_s, case.snapshot.time_s
    times = [time_s for p in case.history.past for time_s in (p.written_s, p.touched_s)]
    times += [time_s for time_s in (seen_s, case.history.seen_until_s) if time_s is not None]
    ahead_s = max((time_s - case.now_s for time_s in times), default=0.0)
    detail = f"the latest of all times is {ahead_s:.0f} s ahead of the clock, at most {skew_s:g} s"
    return allow(detail) if ahead_s <= skew_s else deny(detail)


def sources_agree(case: Case) -> Answer:
    """What the gateway took in, the engines must account for; who is known to one must be known to the other."""
    strangers = _strangers(case)
    if strangers:
        return deny(strangers)
    arrived = case.known(Signal.ARRIVED)
    if arrived is None:
        return allow("one source only, so there is nothing to compare")
    least, most = _accounted(case)
    slack = _slack(case, arrived)
    told = f"{least:.0f}" if least == most else f"{least:.0f} to {most:.0f}"
    detail = f"{arrived:.0f} requests arrived, {told} are accounted for, at most {slack:.0f} apart"
    return allow(detail) if least - slack <= arrived <= most + slack else deny(detail)


def corroborated(case: Case) -> Answer:
    """One source may be wrong or forged: what cannot be undone at once needs the trouble seen by two of them."""
    if case.setting.setting_class is SettingClass.A:
        return allow("class A is undone at once")
    if case.action.requested_by != AGENT:
        return allow(f"asked for by {case.action.requested_by}")
    targets = tuple(sorted(case.snapshot.replicas)) if case.action.target == FLEET else (case.action.target,)
    signs = {source: sign for target in targets for source, sign in signs_of_trouble(case, target).items()}
    told = "; ".join(f"{source}: {sign}" for source, sign in sorted(signs.items())) or "none of them"
    detail = f"trouble is seen by {len(signs)} of the sources, at least {case.policy.evidence.sources_min} ({told})"
    return allow(detail) if len(signs) >= case.policy.evidence.sources_min else deny(detail)


def _slack(case: Case, arrived: float) -> float:
    """How far apart the counts may be; what arrived since the older source was read is known to one of them only."""
    limits, finished = case.policy.evidence, case.snapshot.fact(Signal.FINISHED)
    late_s = 0.0 if finished is None or finished.age_s is None else finished.age_s
    late = arrived * late_s / case.snapshot.window_s if case.snapshot.window_s else 0.0
    return max(limits.disagreement_min_requests, limits.disagreement_max_ratio * arrived) + late


def _accounted(case: Case) -> tuple[float, float]:
    """Requests that left or are still inside, at least and at most: a refusal may count as an error as well."""
    ended = sum(case.known(signal) or 0.0 for signal in (Signal.FINISHED, Signal.ABORTED))
    refused = sum(case.known(signal) or 0.0 for signal in (Signal.ERRORS, Signal.SHED))
    inside = sum(_grown(case, signal) for signal in (Signal.RUNNING, Signal.WAITING, Signal.GATEWAY_QUEUE))
    return ended + inside, ended + inside + refused


def _grown(case: Case, signal: Signal) -> float:
    now, fact = case.known(signal), case.snapshot.fact(signal)
    return 0.0 if now is None or fact is None or fact.start is None else now - fact.start


def _strangers(case: Case) -> str | None:
    """A replica that the gateway does not know, or one that it has up and whose engine tells nothing.

    Engines of one replica are called REPLICA/INDEX; the gateway knows the replica.
    """
    engines: dict[str, bool] = {}
    up: dict[str, float] = {}
    for name in sorted(case.snapshot.replicas):
        replica, state = name.partition("/")[0], case.known(Signal.UP, name)
        engines[replica] = engines.get(replica, False) or case.known(Signal.RUNNING, name) is not None
        up |= {} if state is None else {replica: state}
    for replica, tells in engines.items():
        if up and replica not in up:
            return f"the gateway tells nothing of {replica}, but of others"
        if up.get(replica) and not tells:
            return f"{replica} is up at the gateway, and its engine tells nothing"
    return None
