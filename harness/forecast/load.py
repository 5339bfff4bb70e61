"""The load that the live metrics show, as far as a forecast needs it, and how sure it is."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from harness.forecast.clients import NOBODY_WAITS, Clients
from harness.forecast.lengths import Floats, Lengths, lengths_of
from harness.forecast.prefixes import Prefixes, prefixes_of
from stack.reading import Distribution
from stack.snapshot import FLEET, Signal, Snapshot

BURSTINESS_MAX = 8.0
"""Windows of a minute mix slow drift of the rate into their variance; more than this would be all drift."""
BURSTINESS_PRIOR = 8.0
"""How many half windows of Poisson arrivals the estimate starts from: a variance of few counts is uncertain."""
ENOUGH_REQUESTS = 400.0
"""Windows are taken, newest first, until so many requests stand behind the lengths: old ones tell of another load."""
SOUND_RATIO = 0.85
"""Windows in which a smaller share of the arrivals finished tell of the requests that were preferred, not of all."""
FADING = 0.6
"""Weight of a window's rate against that of the next newer one."""
SHORT_FIRST = ("short_first", "class_short_first")
DRIFT_SPREAD = 0.05
"""Standard deviation of the log of the rate from one horizon to the next that steady traffic may have."""


@dataclass(frozen=True)
class Load:
    """What arrives.

    Attributes:
        arrivals_per_s: over the fleet.
        rate_spread: standard deviation of its logarithm: counting noise and drift.
        burstiness: variance of arrivals per window over their mean; 1 for Poisson arrivals.
        prefixes: what prompts share; None when nothing is reused.
        clients: who ask again when they were answered; none where arrivals do not wait for answers.
    """

    arrivals_per_s: float
    prompt: Lengths
    output: Lengths
    prefixes: Prefixes | None = None
    burstiness: float = 1.0
    rate_spread: float = DRIFT_SPREAD
    clients: Clients = NOBODY_WAITS

    def times(self, ratio: float) -> "Load":
        """So many times the load: arrivals, and clients."""
        return replace(self, arrivals_per_s=self.arrivals_per_s * ratio, clients=self.clients.times(ratio))


def load_of(snapshots: Sequence[Snapshot]) -> Load | None:
    """Load over the last snapshots, oldest first and not overlapping; None when arrivals or lengths are unknown."""
    counted = [snapshot for snapshot in snapshots if snapshot.per_s(Signal.ARRIVED) is not None]
    recent = _recent(_sound(snapshots))
    prompt, output = (lengths_of(recent, d) for d in (Distribution.PROMPT_TOKENS, Distribution.OUTPUT_TOKENS))
    if not counted or prompt is None or output is None:
        return None
    rate, spread = _rate(counted)
    if rate <= 0:
        return None
    prefixes = prefixes_of(recent[-1], prompt.mean_tokens)
    return Load(rate, prompt, output, prefixes, _burstiness(counted), spread)


def _recent(snapshots: Sequence[Snapshot]) -> list[Snapshot]:
    """The newest snapshots with enough finished requests to tell the lengths, oldest first."""
    chosen: list[Snapshot] = []
    requests = 0.0
    for snapshot in reversed(snapshots):
        chosen.insert(0, snapshot)
        requests += snapshot.value(Signal.FINISHED) or 0.0
        if requests >= ENOUGH_REQUESTS:
            break
    return chosen


def _sound(snapshots: Sequence[Snapshot]) -> Sequence[Snapshot]:
    """Windows whose finished requests stand for all: where short prompts go first, those that saw all finish."""
    priority = snapshots[-1].settings.get("priority_policy", {}).get(FLEET, "fcfs")
    if priority not in SHORT_FIRST:
        return snapshots
    sound = [
        one
        for one in snapshots
        if (one.value(Signal.FINISHED) or 0.0) >= SOUND_RATIO * (one.value(Signal.ARRIVED) or 0.0)
    ]
    return sound or snapshots


def _rate(snapshots: Sequence[Snapshot]) -> tuple[float, float]:
    """Rate to come, and the spread of its logarithm: newer and longer windows count more."""
    counts = np.array([snapshot.value(Signal.ARRIVED) or 0.0 for snapshot in snapshots])
    lengths_s = np.array([snapshot.window_s or 0.0 for snapshot in snapshots])
    weights = lengths_s * np.array([FADING**age for age in range(len(snapshots))][::-1])
    weights /= weights.sum()
    rates = counts / lengths_s
    counting = float((weights**2 / np.maximum(1.0, counts)).sum()) * _burstiness(snapshots)
    drift = max(DRIFT_SPREAD, _drift(counts, lengths_s))
    return float(weights @ rates), float(np.sqrt(counting + drift**2))


def _drift(counts: Floats, lengths_s: Floats) -> float:
    """Standard deviation of the log rate's step from window to window, beyond what counting explains."""
    if len(counts) < 4 or counts.min() <= 0:
        return 0.0
    steps = np.diff(np.log(counts / lengths_s))
    noise = 1 / counts[1:] + 1 / counts[:-1]
    return float(np.sqrt(max(0.0, (steps**2 - noise).mean())))


def _burstiness(snapshots: Sequence[Snapshot]) -> float:
    """Variance over mean of the arrivals in half windows, about a line through their rates, shrunk to Poisson's."""
    halves = np.array([half for snapshot in snapshots for half in _halves(snapshot)])
    if len(halves) < 4 or halves[:, 0].sum() <= 0:
        return 1.0
    counts, lengths_s = halves.T
    place = np.arange(len(counts))
    rates = np.polyval(np.polyfit(place, counts / lengths_s, 1, w=np.sqrt(lengths_s)), place)
    expected = lengths_s * np.maximum(rates, counts.sum() / lengths_s.sum() / 4)
    degrees = len(counts) - 2
    ratio = float(((counts - expected) ** 2 / expected).sum()) / degrees
    shrunk = (degrees * ratio + BURSTINESS_PRIOR) / (degrees + BURSTINESS_PRIOR)
    return min(BURSTINESS_MAX, max(1.0, shrunk))


def _halves(snapshot: Snapshot) -> tuple[tuple[float, float], ...]:
    """(arrivals, seconds) of both halves of a window."""
    fact = snapshot.fact(Signal.ARRIVED)
    if fact is None or fact.start is None or not snapshot.window_s:
        return ()
    half_s = snapshot.window_s / 2
    return (fact.start, half_s), (max(0.0, fact.value - fact.start), half_s)
