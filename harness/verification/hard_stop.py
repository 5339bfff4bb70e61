"""Hard stops: what ends a change at once, without statistics. Pure."""

from collections.abc import Sequence

from harness.policy import Policy
from harness.verification.block import Block
from harness.verification.comparison import LOAD_RATIO_MAX, load_of
from stack.snapshot import FLEET, Signal, Snapshot

ERRORS_MIN = 10.0
KV_FULL_RATIO = 0.95
FINISHED_MIN = 5.0
RECENT_BLOCKS = 2
WAITED_RATIO = 4.0
"""Of the waits just before a change: who still queues then may have waited longer than any that was answered."""


def hard_stop(snapshot: Snapshot, before: Sequence[Block], targets: Sequence[str], policy: Policy) -> str | None:
    """Why a change must be undone at once, in words; None when nothing speaks for it.

    Args:
        snapshot: the newest facts.
        before: blocks before the change; what was as bad already is not held against it.
        targets: replicas the change was written to.
        policy: limits.
    """
    return _errors(snapshot, before, policy) or _down(snapshot, targets) or _pressure(snapshot, before, policy)


def _errors(snapshot: Snapshot, before: Sequence[Block], policy: Policy) -> str | None:
    errors, finished = (snapshot.value(s) for s in (Signal.ERRORS, Signal.FINISHED))
    if errors is None or finished is None or errors < ERRORS_MIN:
        return None
    share = errors / max(1.0, errors + finished)
    usual = max((_share(b) for b in before), default=0.0)
    limit = max(policy.verification.hard_stop_error_ratio, 1.5 * usual)
    return f"{share:.0%} of responses are errors, limit {limit:.0%}" if share > limit else None


def _down(snapshot: Snapshot, targets: Sequence[str]) -> str | None:
    down = [t for t in targets if t != FLEET and snapshot.value(Signal.UP, t) == 0]
    return f"{', '.join(down)} went down after the change" if down else None


def _pressure(snapshot: Snapshot, before: Sequence[Block], policy: Policy) -> str | None:
    """TTFT far above its promise, or KV blocks exhausted, at a load that was carried before."""
    block_loads = [load for b in before if (load := load_of(b, FLEET)) is not None]
    rate, prompt = snapshot.per_s(Signal.ARRIVED), snapshot.value(Signal.PROMPT_TOKENS_MEAN)
    if rate is not None and block_loads and rate * (prompt or 1.0) > LOAD_RATIO_MAX * max(block_loads):
        return None
    figure, ttft_s = _ttft(snapshot)
    limit_s = _wait_limit_s(before, policy.verification.hard_stop_slo_ratio * policy.slo.ttft_limit_s(prompt or 0.0))
    if ttft_s is not None and ttft_s > limit_s:
        return f"TTFT {figure} is {ttft_s:.2f} s, limit {limit_s:.2f} s"
    kv, preempted = snapshot.value(Signal.KV_USAGE_RATIO), snapshot.value(Signal.PREEMPTIONS)
    usual = max((b.fleet.get(Signal.PREEMPTIONS, 0.0) for b in before), default=0.0)
    if kv is not None and preempted is not None and kv >= KV_FULL_RATIO and preempted > max(ERRORS_MIN, 1.5 * usual):
        return f"KV use is {kv:.2f} with {preempted:g} preemptions, {usual:g} at most before the change"
    return None


def _ttft(snapshot: Snapshot) -> tuple[str, float | None]:
    """TTFT P95, or the mean where too few requests finished to tell it, but more than a stray one."""
    late_s = snapshot.value(Signal.TTFT_P95_S)
    if late_s is not None or (snapshot.value(Signal.FINISHED) or 0.0) < FINISHED_MIN:
        return "P95", late_s
    return "mean", snapshot.value(Signal.TTFT_MEAN_S)


def _wait_limit_s(before: Sequence[Block], promised_s: float) -> float:
    """A promise broken just before a change is what the change is for: waits that began earlier end after it."""
    told_s = [late_s for block in before if (late_s := _late_s(block)) is not None]
    recent_s = max(told_s[-RECENT_BLOCKS:], default=0.0)
    return WAITED_RATIO * recent_s if recent_s > promised_s else promised_s


def _late_s(block: Block) -> float | None:
    """TTFT P95, or the mean where too few requests finished to tell it: that it was broken is then told too seldom."""
    return block.fleet.get(Signal.TTFT_P95_S, block.fleet.get(Signal.TTFT_MEAN_S))


def _share(block: Block) -> float:
    errors, finished = block.fleet.get(Signal.ERRORS, 0.0), block.fleet.get(Signal.FINISHED, 0.0)
    return errors / max(1.0, errors + finished)
