"""Metrics by which changes are judged, computed from the values of one block."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from harness.objective import Slo
from harness.verification.block import Values
from harness.verification.scale import DIFFERENCE, INSIDE, RATIO, Scale
from stack.measure import MIN_OBSERVATIONS
from stack.snapshot import Signal


@dataclass(frozen=True)
class Metric:
    """One judged quantity.

    Attributes:
        name: as it appears in a verification.
        of: its value in a block, or None when it was not measured there.
        lower_is_better: its direction.
        scale: on which it is compared.
        floor: smallest value that still matters; smaller ones count as this, so that no ratio is taken of nothing.
        limit: what the SLO allows, or None when nothing is promised about it.
        counted: what was done of what was asked for: not explained by the load, so not adjusted for it.
    """

    name: str
    of: Callable[[Values, Slo], float | None]
    lower_is_better: bool = True
    scale: Scale = RATIO
    floor: float = 1e-4
    limit: Callable[[Values, Slo], float | None] = lambda _values, _slo: None
    counted: bool = False

    def scaled(self, value: float) -> float:
        """Where a value stands on the metric's scale."""
        return self.scale.to(max(value, self.floor))


def offered(values: Values) -> float | None:
    """Requests that came in: counted at the door, or else by how they ended."""
    if Signal.ARRIVED in values:
        return values[Signal.ARRIVED]
    ends = [values[s] for s in (Signal.FINISHED, Signal.SHED, Signal.ERRORS, Signal.ABORTED) if s in values]
    return sum(ends) if ends else None


def output_tokens_mean(values: Values) -> float | None:
    """Tokens per finished request."""
    if Signal.OUTPUT_TOKENS_MEAN in values:
        return values[Signal.OUTPUT_TOKENS_MEAN]
    finished, tokens = values.get(Signal.FINISHED), values.get(Signal.GENERATION_TOKENS)
    return tokens / finished if finished and tokens is not None else None


def share_within(limit_s: float, p50: float | None, p95: float | None, p99: float | None) -> float | None:
    """Share of requests at or below `limit_s`, read off three quantiles by straight lines between them."""
    known = [(0.0, 0.0)] + [(q, s) for q, s in ((p50, 0.5), (p95, 0.95), (p99, 0.99)) if q is not None]
    if len(known) < 2:
        return None
    for (low_s, low), (high_s, high) in pairwise(known):
        if limit_s < high_s:
            return low if high_s <= low_s else low + (high - low) * max(0.0, limit_s - low_s) / (high_s - low_s)
    return 1.0 if known[-1][1] >= 0.99 else known[-1][1]


def _signal(signal: Signal) -> Callable[[Values, Slo], float | None]:
    return lambda values, _slo: values.get(signal)


def _e2e_per_token(values: Values, _slo: Slo) -> float | None:
    e2e_s, tokens = values.get(Signal.E2E_MEAN_S), output_tokens_mean(values)
    return e2e_s / tokens if e2e_s is not None and tokens else None


def _per_offered(signal: Signal) -> Callable[[Values, Slo], float | None]:
    def share(values: Values, _slo: Slo) -> float | None:
        count, of = values.get(signal), offered(values)
        return count / of if count is not None and of else None

    return share


def _slo_share(values: Values, slo: Slo) -> float | None:
    """Goodput: requests inside both limits, of all that were offered. What is shed, lost or stuck counts as outside."""
    served = _per_offered(Signal.FINISHED)(values, slo)
    if not served:
        return served
    ttft = _ttft_share(values, slo.ttft_limit_s(values.get(Signal.PROMPT_TOKENS_MEAN, 0.0)))
    itl = share_within(slo.itl_s, *(values.get(s) for s in (Signal.ITL_P50_S, Signal.ITL_P95_S, Signal.ITL_P99_S)))
    if ttft is None:
        return None
    return min(ttft, 1.0 if itl is None else itl) * min(1.0, served)


def _ttft_share(values: Values, limit_s: float) -> float | None:
    """Share of first tokens in time; with too few requests for a median, their mean stands for all."""
    share = share_within(limit_s, *(values.get(s) for s in (Signal.TTFT_P50_S, Signal.TTFT_P95_S, Signal.TTFT_P99_S)))
    mean_s, few = values.get(Signal.TTFT_MEAN_S), values.get(Signal.FINISHED, 0.0) < MIN_OBSERVATIONS[0.5]
    return float(mean_s <= limit_s) if share is None and few and mean_s is not None else share


def _ttft_limit(values: Values, slo: Slo) -> float | None:
    return slo.ttft_limit_s(values.get(Signal.PROMPT_TOKENS_MEAN, 0.0))


_ALL = (
    Metric("ttft_mean_s", _signal(Signal.TTFT_MEAN_S), floor=1e-3, limit=_ttft_limit),
    Metric("ttft_p99_s", _signal(Signal.TTFT_P99_S), floor=1e-3, limit=_ttft_limit),
    Metric("ttft_p95_s", _signal(Signal.TTFT_P95_S), floor=1e-3, limit=_ttft_limit),
    Metric("itl_mean_s", _signal(Signal.ITL_MEAN_S), limit=lambda _values, slo: slo.itl_s),
    Metric("itl_p99_s", _signal(Signal.ITL_P99_S)),
    Metric("e2e_mean_s", _signal(Signal.E2E_MEAN_S), floor=1e-3),
    Metric("e2e_per_token_s", _e2e_per_token),
    Metric("queue_mean_s", _signal(Signal.QUEUE_MEAN_S), floor=1e-2),
    Metric("preemptions_share", _per_offered(Signal.PREEMPTIONS), scale=DIFFERENCE, floor=0.0),
    Metric("error_share", _per_offered(Signal.ERRORS), scale=DIFFERENCE, floor=0.0, counted=True),
    Metric("served_share", _per_offered(Signal.FINISHED), False, DIFFERENCE, floor=0.0, counted=True),
    Metric("slo_share", _slo_share, False, INSIDE, floor=0.0),
)

METRICS: Mapping[str, Metric] = {metric.name: metric for metric in _ALL}
