"""How far what users feel is from what they were promised, and how severe that makes a finding."""

from dataclasses import dataclass
from itertools import pairwise

from harness.objective import Slo
from skills.replica import Replica
from stack.snapshot import Signal

MISS_SEVERITY = ((0.7, 0.0), (1.0, 0.4), (2.0, 0.8), (4.0, 1.0))
"""(measured / limit, severity): nothing below 70 % of the limit, a problem at the limit, grave at twice the limit."""

_TTFT = (Signal.TTFT_P95_S, Signal.TTFT_MEAN_S)
"""The tail where enough requests were seen, otherwise the mean."""


@dataclass(frozen=True)
class Promised:
    """A measured latency against its limit."""

    signal: Signal
    measured_s: float
    limit_s: float

    @property
    def ratio(self) -> float:
        """Measured over limit; above 1 the promise is broken."""
        return self.measured_s / self.limit_s

    @property
    def severity(self) -> float:
        """How severe that is by itself."""
        return miss_severity(self.ratio)

    @property
    def evidence(self) -> dict[str, float]:
        """The numbers, named."""
        return {str(self.signal): self.measured_s, f"{str(self.signal).split('_')[0]}_limit_s": self.limit_s}


def first_token(replica: Replica, slo: Slo) -> Promised | None:
    """TTFT against its limit for prompts of the mean length; None when it was not measured."""
    limit_s = slo.ttft_limit_s(replica.amount(Signal.PROMPT_TOKENS_MEAN))
    for signal in _TTFT:
        value = replica.value(signal)
        if value is not None and limit_s > 0:
            return Promised(signal, value, limit_s)
    return None


def token_time(replica: Replica, slo: Slo) -> Promised | None:
    """Mean time between tokens against its limit; the promise is on a request's mean, so its tail says nothing."""
    value = replica.token_time_s
    return None if value is None or slo.itl_s <= 0 else Promised(Signal.ITL_MEAN_S, value, slo.itl_s)


def worst_severity(*promised: Promised | None) -> float:
    """The worst of several, 0 when none was measured."""
    return max((one.severity for one in promised if one is not None), default=0.0)


def miss_severity(ratio: float) -> float:
    """Severity of a latency at `ratio` times its limit, on straight lines between the points of the table."""
    if ratio <= MISS_SEVERITY[0][0]:
        return 0.0
    for (left, low), (right, high) in pairwise(MISS_SEVERITY):
        if ratio <= right:
            return low + (high - low) * (ratio - left) / (right - left)
    return 1.0


def unit(value: float) -> float:
    """`value` held between 0 and 1."""
    return min(1.0, max(0.0, value))
