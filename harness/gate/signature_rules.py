"""The two rules operators ask for first, memory and latency, and the least gain worth a change."""

from harness.gate.case import Answer, Case, MissingInputError, allow, ask, deny
from harness.gate.evidence_rules import memory_replicas
from stack.setting import Effect
from stack.snapshot import FLEET, Signal


def memory_headroom(case: Case) -> Answer:
    """KV use after the change stays below its watermark, and free device memory above its floor.

    vLLM allocates the device when it starts, so the device's use alone says nothing about pressure.
    """
    if not case.raises_memory:
        return allow("does not raise memory use")
    limit = case.policy.memory.kv_usage_max_ratio
    worst = max((_kv_after(case, replica) for replica in memory_replicas(case)), default=1.0)
    predicted = case.trusted("kv_usage_p95_ratio")
    if predicted is not None:
        now = max((case.need(Signal.KV_USAGE_RATIO, r) for r in memory_replicas(case)), default=1.0)
        worst = max(predicted.after, now)
    detail = f"KV use {worst:.2f} predicted after the change, at most {limit:g}"
    if not worst <= limit:
        return deny(f"{detail}, and the change raises memory use")
    short = _device_short(case)
    return deny(short) if short else allow(f"{detail}; {_device_words(case)}")


def latency_headroom(case: Case) -> Answer:
    """Near its SLO, nothing may make end-to-end P99 worse."""
    hot = _near_slo(case)
    if not hot:
        return allow(f"every promised latency is below {case.policy.latency.slo_max_ratio:.0%} of its SLO")
    predicted = case.trusted("e2e_p99_s")
    if predicted is not None:
        detail = f"{hot}; end-to-end P99 forecast {predicted.before:.2f} s to {predicted.after:.2f} s"
        return deny(detail) if predicted.after > predicted.before else allow(detail)
    if Effect.RAISES_LATENCY not in case.effects:
        return allow(f"{hot}; the change does not raise latency by itself")
    if Effect.RELIEVES_QUEUE in case.effects and case.queue > 0:
        return allow(f"{hot}; it relieves a queue of {case.queue:g}")
    return deny(f"{hot}, the change raises latency, and no trusted forecast says otherwise")


def minimum_gain(case: Case) -> Answer:
    """Every change costs trust and cache; one that gains next to nothing is not made."""
    if case.protective:
        return allow("a protective change needs no gain")
    pace, share = case.policy.pace, case.trusted("slo_share")
    if share is None:
        if Effect.RELIEVES_QUEUE in case.effects and case.queue > 0:
            return allow(f"no trusted forecast; it relieves a queue of {case.queue:g}")
        return ask("no trusted forecast of the gain: a person decides")
    gain, latency_gain = share.after - share.before, _latency_gain(case)
    detail = (
        f"predicted gain {gain:.3f} of requests inside the SLO (at least {pace.slo_share_gain_min_ratio:g}), "
        f"latency {latency_gain:.0%} lower or {_throughput_gain(case):.0%} more finished "
        f"(at least {pace.latency_gain_min_ratio:.0%})"
    )
    steady = gain > -pace.slo_share_gain_min_ratio / 4
    other_gain = max(latency_gain, _throughput_gain(case))
    enough = gain >= pace.slo_share_gain_min_ratio or (steady and other_gain >= pace.latency_gain_min_ratio)
    return allow(detail) if enough else deny(detail)


def _latency_gain(case: Case) -> float:
    """Largest relative fall of a predicted latency that its 80 % interval confirms."""
    gains = [0.0]
    for name in ("e2e_p99_s", "ttft_p99_s", "itl_mean_s"):
        predicted = case.trusted(name)
        if predicted is not None and predicted.before > 0 and predicted.high < predicted.before:
            gains.append(1.0 - predicted.after / predicted.before)
    return max(gains)


def _throughput_gain(case: Case) -> float:
    """Relative rise of the requests finished that its 80 % interval confirms.

    While a backlog makes every answer late, this is the only figure in which a repair shows at once.
    """
    predicted = case.trusted("finished_per_s")
    if predicted is None or predicted.before <= 0 or predicted.low <= predicted.before:
        return 0.0
    return predicted.after / predicted.before - 1.0


def _kv_after(case: Case, replica: str) -> float:
    """Static estimate: KV use grows with the running requests, as far as there is a queue to run."""
    use = case.need(Signal.KV_USAGE_RATIO, replica)
    if case.removes_capacity:
        count = len(case.snapshot.replicas)
        return use * count / max(1, count - 1)
    before, after = case.action.before, case.action.after
    if isinstance(before, str) or isinstance(after, str) or before <= 0:
        return use
    running = max(1.0, case.need(Signal.RUNNING, replica))
    gateway = (case.known(Signal.GATEWAY_QUEUE) or 0.0) / max(1, len(case.snapshot.replicas))
    ready = (running + case.need(Signal.WAITING, replica) + gateway) / running
    return use * max(1.0, min(after / before, ready))


def _device_short(case: Case) -> str | None:
    for replica in memory_replicas(case):
        free, floor = case.known(Signal.DEVICE_FREE_BYTES, replica), case.device_floor_bytes(replica)
        if free is not None and free < floor:
            return f"{replica} has {free / 2**30:.2f} GiB of device memory free, at least {floor / 2**30:.2f} GiB"
    return None


def _device_words(case: Case) -> str:
    seen = any(case.known(Signal.DEVICE_FREE_BYTES, replica) is not None for replica in memory_replicas(case))
    return "device memory is above its floor" if seen else "device memory is not measured, judged by KV use alone"


def _near_slo(case: Case) -> str | None:
    """Which promised latency is above its share of the SLO, in words; with too few requests for a P99, it may be.

    Raises:
        MissingInputError: no latency was measured at all, so nobody can say.
    """
    slo, share = case.policy.slo, case.policy.latency.slo_max_ratio
    limits = slo.limits_s(case.known(Signal.PROMPT_TOKENS_MEAN) or 0.0)
    measured = {signal: case.known(signal, FLEET) for signal in limits}
    for signal, limit in limits.items():
        value = measured[signal]
        if value is not None and limit is not None and value > share * limit:
            return f"{signal} {value:.3f} s is above {share:.0%} of its limit {limit:.3f} s"
    if measured[Signal.TTFT_P99_S] is not None or measured[Signal.E2E_P99_S] is not None:
        return None
    if case.known(Signal.TTFT_MEAN_S) is None and case.known(Signal.E2E_MEAN_S) is None:
        raise MissingInputError("neither TTFT nor end-to-end latency was measured")
    return "too few requests in the window for a P99, so it is taken as near its limit"
