"""Which independent sources see trouble on a replica: its engine, the gateway, the device."""

from harness.gate.case import Case
from harness.gate.condition import is_down, makes_progress, peers_median
from stack.snapshot import Signal


def signs_of_trouble(case: Case, replica: str) -> dict[str, str]:
    """By source, what it shows, in words with numbers. Read from the facts, never from what a planner says of them."""
    found = {"engine": _engine(case, replica), "gateway": _gateway(case, replica), "device": _device(case, replica)}
    return {source: sign for source, sign in found.items() if sign is not None}


def _engine(case: Case, replica: str) -> str | None:
    preempted, waiting = case.known(Signal.PREEMPTIONS, replica), case.known(Signal.WAITING, replica)
    if preempted:
        return f"{preempted:g} preemptions"
    if waiting:
        return f"{waiting:g} requests wait"
    if not is_down(case.snapshot, replica) and not makes_progress(case.snapshot, replica):
        return "no forward progress"
    token_s = case.known(Signal.ITL_MEAN_S, replica)
    if token_s is not None and token_s > case.policy.slo.itl_s:
        return f"{token_s * 1000:.0f} ms per token, promised are {case.policy.slo.itl_s * 1000:.0f} ms"
    return _behind(case, Signal.ITL_MEAN_S, replica, "token time")


def _gateway(case: Case, replica: str) -> str | None:
    if is_down(case.snapshot, replica):
        return "down"
    queue = case.known(Signal.GATEWAY_QUEUE)
    if queue:
        return f"{queue:g} requests wait"
    return _behind(case, Signal.GATEWAY_SESSIONS, replica, "sessions")


def _device(case: Case, replica: str) -> str | None:
    fragmented, limit = case.known(Signal.FRAGMENTATION_RATIO, replica), case.policy.memory.fragmented_ratio
    if fragmented is not None and fragmented >= limit:
        return f"{fragmented:.0%} of the reserved memory is in fragments"
    free, floor = case.known(Signal.DEVICE_FREE_BYTES, replica), case.device_floor_bytes(replica)
    return f"{free / 2**30:.2f} GiB free" if free is not None and free < floor else None


def _behind(case: Case, signal: Signal, replica: str, what: str) -> str | None:
    """A signal that stands out among the peers'."""
    own, usual = case.known(signal, replica), peers_median(case.snapshot, signal, replica)
    if own is None or not usual or own < case.policy.evidence.behind_ratio * usual:
        return None
    return f"{what} {own / usual:.1f} times its peers'"
