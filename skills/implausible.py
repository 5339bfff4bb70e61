"""Values that no serving stack can have, and pairs of values that cannot both be true."""

from collections.abc import Iterator, Mapping

from harness.diagnosis import Finding
from skills.skill import SkillContext
from stack.layer import Layer
from stack.snapshot import FLEET, Fact, Facts, Signal

TTFT_MIN_S = 1e-3
"""A first token needs a whole pass over the prompt; launching the kernels alone takes about a millisecond."""
ITL_MIN_S = 5e-5
"""Twenty thousand tokens per second for one request: beyond any hardware, with or without speculation."""
ENOUGH_REQUESTS = 50.0
CONTRADICTION_RATIO = 2.0
"""A whole request cannot take half as long as its first token, even where the two count different requests."""
RATIOS = (Signal.KV_USAGE_RATIO, Signal.PREFIX_HIT_RATIO, Signal.DRAFT_ACCEPT_RATIO, Signal.FRAGMENTATION_RATIO)


def implausible_findings(ctx: SkillContext) -> list[Finding]:
    """One finding per target, with all that is wrong about its metrics."""
    snapshot, found = ctx.snapshot, []
    parts: list[tuple[str, Facts, bool]] = [(name, facts, True) for name, facts in sorted(snapshot.lifetime.items())]
    parts += [(name, facts, False) for name, facts in sorted(snapshot.replicas.items())]
    for name, facts, since_start in parts:
        problems = dict(_impossible(facts))
        if not since_start:
            problems |= dict(_contradictory(facts))
        if problems:
            found.append(_finding(name, problems, facts, since_start))
    return found


def _finding(name: str, problems: Mapping[Signal, str], facts: Facts, since_start: bool) -> Finding:
    period = "since process start" if since_start else "in the window"
    return Finding(
        layer=Layer.OBSERVABILITY,
        cause="metrics_implausible",
        claim=f"Metrics of {name or FLEET} {period} are not to be believed: {'; '.join(problems.values())}.",
        severity=0.7,
        confidence=0.9,
        tunable=False,
        target=name,
        evidence={str(signal): facts[signal].value for signal in problems if signal in facts},
        advice="Ask whoever maintains the engine or the exporter: until shown otherwise the metric is at fault.",
    )


def _impossible(facts: Facts) -> Iterator[tuple[Signal, str]]:
    ttft, itl = facts.get(Signal.TTFT_MEAN_S), facts.get(Signal.ITL_MEAN_S)
    if ttft is not None and ttft.value < TTFT_MIN_S:
        yield Signal.TTFT_MEAN_S, f"a mean TTFT of {ttft.value * 1e6:.0f} microseconds is less than one engine step"
    tail = facts.get(Signal.TTFT_P99_S) or facts.get(Signal.TTFT_P95_S)
    if tail is not None and tail.value < TTFT_MIN_S:
        yield Signal.TTFT_P99_S, "all first tokens lie in the lowest bucket of the TTFT histogram"
    if itl is not None and 0 <= itl.value < ITL_MIN_S:
        yield Signal.ITL_MEAN_S, f"a token every {itl.value * 1e6:.0f} microseconds is beyond any hardware"
    for signal in RATIOS:
        fact = facts.get(signal)
        if fact is not None and not 0 <= fact.value <= 1 and fact.value == fact.value:
            yield signal, f"{signal} of {fact.value:g} is not a share"
    for signal, fact in facts.items():
        if fact.value < 0 and signal not in RATIOS:
            yield signal, f"{signal} is negative ({fact.value:g})"


def _contradictory(facts: Facts) -> Iterator[tuple[Signal, str]]:
    ttft, whole, finished = (facts.get(s) for s in (Signal.TTFT_MEAN_S, Signal.E2E_MEAN_S, Signal.FINISHED))
    comparable = finished and finished.value >= ENOUGH_REQUESTS and _calm(facts.get(Signal.WAITING))
    if comparable and ttft and whole and ttft.value > CONTRADICTION_RATIO * whole.value:
        yield Signal.E2E_MEAN_S, f"whole requests take {whole.value:.3g} s, their first tokens {ttft.value:.3g} s"
    made, running = facts.get(Signal.GENERATION_TOKENS), facts.get(Signal.RUNNING)
    idle = running is not None and max(running.value, running.start or 0.0, running.peak or 0.0) == 0
    waiting = facts.get(Signal.WAITING)
    queued = waiting is not None and min(waiting.value, waiting.start or 0.0) > 0
    if idle and queued and made is not None and made.value > 0:
        yield Signal.RUNNING, f"{made.value:g} tokens were made while nothing ever ran and requests waited"


def _calm(queue: Fact | None) -> bool:
    """Whether the queue hardly changed: a mean over starts and one over ends then speak of the same requests."""
    return queue is not None and queue.start is not None and abs(queue.value - queue.start) <= 2
