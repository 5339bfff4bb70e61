"""What a forecast promises, as one number to rank by, and whether it is enough to act on."""

from dataclasses import dataclass

from harness.action import Action, Forecast, Predicted, Trust
from harness.diagnosis import Finding
from harness.limits import Pace

LATENCY_WEIGHT = 0.1
"""A P99 that falls to nothing is worth as much as a tenth of all requests brought inside the SLO."""
STRESS_WEIGHT = 0.25
"""Weight of the gain at twice the load: at full weight a search guards against what does not come, without any it
tunes for calm; a quarter was found to lose nothing under tight limits."""
HARMLESS_SHARE = 0.005
HARMLESS_LATENCY = 0.05
CLASS_SETTINGS = ("batch_in_flight_cap", "priority_policy")
"""Settings that treat classes of requests apart, which no forecast can tell from metrics."""
SURE = 0.5
"""Severity and confidence from which a finding alone justifies a repair that is not predicted to do harm."""


@dataclass(frozen=True)
class Worth:
    """Predicted gains of a change, positive is better.

    Attributes:
        share: of the requests inside the SLO, absolute.
        latency: relative fall of P99.
        finished: relative rise of the requests finished; it alone shows a repair while a backlog makes all late.
        stressed: as `share`, at twice the load.
    """

    share: float
    latency: float
    finished: float = 0.0
    stressed: float = 0.0

    @property
    def gain(self) -> float:
        """Requests inside the SLO, as the load was and at twice its rate, weighed against each other."""
        return self.share + STRESS_WEIGHT * self.stressed

    @property
    def score(self) -> float:
        """Rank: higher is better."""
        return self.gain + LATENCY_WEIGHT * (self.latency + self.finished)

    @property
    def harmless(self) -> bool:
        """Whether nothing gets noticeably worse."""
        return self.share >= -HARMLESS_SHARE and min(self.latency, self.finished) >= -HARMLESS_LATENCY


def worth_of(forecast: Forecast) -> Worth:
    """The gains `forecast` promises. Latency is that of whole requests, or the first token where that is unknown."""
    share, stressed = _rise(forecast.effects.get("slo_share")), _rise(forecast.stressed.get("slo_share"))
    latency = forecast.effects.get("e2e_p99_s") or forecast.effects.get("ttft_p99_s")
    rate = forecast.effects.get("finished_per_s")
    return Worth(share, _fall(latency), -_fall(rate), stressed)


def enough(action: Action, finding: Finding, pace: Pace) -> tuple[bool, str]:
    """Whether `action` is worth making for `finding`, and why or why not in a few words."""
    sure = finding.severity >= SURE and finding.confidence >= SURE
    forecast, repair = action.forecast, sure and action.layer is action.declaration.layer
    if forecast is not None and forecast.inert and action.setting not in CLASS_SETTINGS:
        return False, "predicted to make no difference at all"
    if forecast is None or forecast.trust is Trust.DOUBTED:
        why = f" ({forecast.note})" if forecast is not None and forecast.note else ""
        return repair, f"no forecast to trust{why}" + (", the finding is sure" if repair else "")
    worth = worth_of(forecast)
    twice = f" ({100 * worth.stressed:+.1f} at twice the load)" if forecast.stressed else ""
    text = (
        f"predicted change {100 * worth.share:+.1f} points of requests inside the SLO{twice}, "
        f"P99 {-worth.latency:+.0%}, finished {worth.finished:+.0%}"
    )
    quicker = max(worth.latency, worth.finished) >= pace.latency_gain_min_ratio and min(worth.share, worth.gain) >= 0
    if (worth.gain >= pace.slo_share_gain_min_ratio and worth.share >= -HARMLESS_SHARE) or quicker:
        return True, text
    return (repair and worth.harmless), text + (": a repair without harm" if repair and worth.harmless else "")


def score_of(action: Action) -> float:
    """Rank of an action among others; one without a forecast comes after those that promise something."""
    return 0.0 if action.forecast is None else worth_of(action.forecast).score


def _rise(predicted: Predicted | None) -> float:
    return 0.0 if predicted is None else predicted.after - predicted.before


def _fall(predicted: Predicted | None) -> float:
    if predicted is None or predicted.before <= 0:
        return 0.0
    return 1.0 - predicted.after / predicted.before
