"""What a forecast promises, as one number to rank by, and whether it is enough to act on."""

from dataclasses import dataclass

from harness.action import Action, Forecast, Predicted, Trust
from harness.diagnosis import Finding
from harness.policy import Pace

LATENCY_WEIGHT = 0.1
"""A P99 that falls to nothing is worth as much as a tenth of all requests brought inside the SLO."""
HARMLESS_SHARE = 0.005
HARMLESS_LATENCY = 0.05
SURE = 0.5
"""Severity and confidence from which a finding alone justifies a repair that is not predicted to do harm."""


@dataclass(frozen=True)
class Worth:
    """Predicted gains of a change, positive is better.

    Attributes:
        share: of the requests inside the SLO, absolute.
        latency: relative fall of P99.
        finished: relative rise of the requests finished; it alone shows a repair while a backlog makes all late.
    """

    share: float
    latency: float
    finished: float = 0.0

    @property
    def score(self) -> float:
        """Rank: higher is better."""
        return self.share + LATENCY_WEIGHT * (self.latency + self.finished)

    @property
    def harmless(self) -> bool:
        """Whether nothing gets noticeably worse."""
        return self.share >= -HARMLESS_SHARE and min(self.latency, self.finished) >= -HARMLESS_LATENCY


def worth_of(forecast: Forecast) -> Worth:
    """The gains `forecast` promises. Latency is that of whole requests, or the first token where that is unknown."""
    share = forecast.effects.get("slo_share")
    latency = forecast.effects.get("e2e_p99_s") or forecast.effects.get("ttft_p99_s")
    rate = forecast.effects.get("finished_per_s")
    return Worth(0.0 if share is None else share.after - share.before, _fall(latency), -_fall(rate))


def enough(action: Action, finding: Finding, pace: Pace) -> tuple[bool, str]:
    """Whether `action` is worth making for `finding`, and why or why not in a few words."""
    sure = finding.severity >= SURE and finding.confidence >= SURE
    forecast, repair = action.forecast, sure and action.layer is action.declaration.layer
    if forecast is None or forecast.trust is Trust.DOUBTED:
        return repair, "no forecast to trust" + (", the finding is sure" if repair else "")
    worth = worth_of(forecast)
    text = (
        f"predicted change {100 * worth.share:+.1f} points of requests inside the SLO, "
        f"P99 {-worth.latency:+.0%}, finished {worth.finished:+.0%}"
    )
    quicker = max(worth.latency, worth.finished) >= pace.latency_gain_min_ratio and worth.share >= 0
    if worth.share >= pace.slo_share_gain_min_ratio or quicker:
        return True, text
    return (repair and worth.harmless), text + (": a repair without harm" if repair and worth.harmless else "")


def score_of(action: Action) -> float:
    """Rank of an action among others; one without a forecast comes after those that promise something."""
    return 0.0 if action.forecast is None else worth_of(action.forecast).score


def _fall(predicted: Predicted | None) -> float:
    if predicted is None or predicted.before <= 0:
        return 0.0
    return 1.0 - predicted.after / predicted.before
