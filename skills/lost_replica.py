"""A replica that is down, makes no progress, or fails what it is sent."""

from harness.diagnosis import Finding
from skills.promise import unit
from skills.replica import Replica, peers_of, taken_out
from stack.layer import Layer
from stack.snapshot import Signal

ERROR_SHARE = 0.05
"""One response in twenty failed: far beyond what single bad requests cause."""
ENOUGH_RESPONSES = 20.0
PEER_RATIO = 3.0
"""A replica fails for reasons of its own when its error share is three times its peers'."""
LONG_ENOUGH_S = 15.0
"""Longer than the prefill of any single prompt: a shorter window without a token proves nothing."""
REPAIR = "Restart or replace it; its machine's operator and the engine's log know why it stopped."


def lost_finding(replica: Replica) -> Finding | None:
    """The claim that `replica` is lost to the pool, or None."""
    if taken_out(replica):
        return None
    if replica.value(Signal.UP) == 0:
        return _down(replica)
    return _stalled(replica) if _no_progress(replica) else _failing(replica)


def _down(replica: Replica) -> Finding:
    return Finding(
        layer=Layer.ROUTING,
        cause="lost_replica",
        claim=f"The gateway counts {replica.name} as down; its peers carry its share.",
        severity=0.85,
        confidence=0.95,
        tunable=False,
        target=replica.name,
        evidence={"up": 0.0, "gateway_queue_requests": replica.value(Signal.GATEWAY_QUEUE)},
        advice=f"The gateway sends it nothing any more. {REPAIR} Until then shed what the others cannot carry.",
    )


def _no_progress(replica: Replica) -> bool:
    """Requests are inside at both ends of the window, and not a single token or answer came out between."""
    running, waiting = replica.fact(Signal.RUNNING), replica.fact(Signal.WAITING)
    if running is None or waiting is None or running.start is None or waiting.start is None:
        return False
    window_s = replica.snapshot.window_s
    if window_s is not None and window_s < LONG_ENOUGH_S:
        return False
    inside = min(running.value + waiting.value, running.start + waiting.start)
    outputs = (Signal.GENERATION_TOKENS, Signal.FINISHED, Signal.PROMPT_TOKENS)
    counted = [value for signal in outputs if (value := replica.value(signal)) is not None]
    return inside >= 1 and replica.value(Signal.GENERATION_TOKENS) is not None and not any(counted)


def _stalled(replica: Replica) -> Finding:
    peers = peers_of(replica)
    running, waiting = replica.amount(Signal.RUNNING), replica.amount(Signal.WAITING)
    return Finding(
        layer=Layer.ROUTING if peers else Layer.BATCHING,
        cause="lost_replica" if peers else "engine_stalled",
        claim=(
            f"{replica.name} holds {running:g} running and {waiting:g} waiting requests and produced no token in the "
            "window: it answers scrapes but makes no progress."
        ),
        severity=0.95,
        confidence=0.9 if replica.snapshot.window_s is not None else 0.6,
        tunable=bool(peers),
        target=replica.name,
        evidence={
            "running_requests": running,
            "waiting_requests": waiting,
            "generation_tokens": 0.0,
            "kv_usage_ratio": replica.value(Signal.KV_USAGE_RATIO),
        },
        advice=f"Take it out of rotation. {REPAIR}" if peers else f"No setting frees a stuck scheduler. {REPAIR}",
    )


def _failing(replica: Replica) -> Finding | None:
    share, peers = _error_share(replica), peers_of(replica)
    if share is None or share < ERROR_SHARE:
        return None
    others = [other for peer in peers if (other := _error_share(peer)) is not None]
    alone = bool(others) and share >= PEER_RATIO * max(others)
    return Finding(
        layer=Layer.ROUTING if alone else Layer.EXTERNAL,
        cause="failing_replica" if alone else "error_responses",
        claim=f"{share:.0%} of the responses of {replica.name} are errors" + (", unlike its peers'." if alone else "."),
        severity=0.5 + 0.5 * unit(share / 0.5),
        confidence=0.8,
        tunable=alone,
        target=replica.name,
        evidence={"error_responses": replica.value(Signal.ERRORS), "error_share": share},
        advice=REPAIR
        if alone
        else "Read the engine's and the gateway's log: errors on all replicas are no matter of load.",
    )


def _error_share(replica: Replica) -> float | None:
    errors, finished = replica.value(Signal.ERRORS), replica.value(Signal.FINISHED)
    if errors is None or finished is None or errors + finished < ENOUGH_RESPONSES:
        return None
    return errors / (errors + finished)
