"""The figures a rehearsal is read by, from what became of the requests; a run that is judged is read the same way."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from harness.objective import Slo
from stack.simulator.fleet import FleetSpec
from stack.simulator.outcomes import Outcomes, Status

PENDING = (Status.AT_GATEWAY, Status.WAITING, Status.RUNNING)
Figures = Mapping[str, float]
QUANTILES = (("ttft_p99_s", "ttft_s", 0.99), ("e2e_p99_s", "e2e_s", 0.99), ("e2e_p50_s", "e2e_s", 0.5))


def figures_of(outcomes: Outcomes, slo: Slo, begin_s: float, end_s: float, now_s: float) -> Figures:
    """Figures of the requests that arrived in [begin_s, end_s), as they stand at `now_s`.

    Times of requests still in the stack count as long as they have lasted; without them the worst would look best.
    Shed and lost requests have no times and count as outside the SLO. `finished_per_s` counts what came to its end in
    the same span, requests that arrived before it included.
    """
    judged = (outcomes.arrival_s >= begin_s) & (outcomes.arrival_s < end_s)
    good = outcomes.good(slo, FleetSpec.batch_limit_s)[judged]
    ended_s = outcomes.arrival_s + outcomes.e2e_s
    figures = {
        "slo_share": float(good.mean()) if len(good) else 1.0,
        "finished_per_s": float(((ended_s >= begin_s) & (ended_s < end_s)).sum()) / (end_s - begin_s),
    }
    pending = np.isin(outcomes.status, PENDING)
    for name, times, share in QUANTILES:
        values: NDArray[np.float64] = getattr(outcomes, times)
        seen = np.where(pending & np.isnan(values), now_s - outcomes.arrival_s, values)[judged]
        seen = seen[np.isfinite(seen)]
        if len(seen):
            figures[name] = float(np.quantile(seen, share))
    gaps = outcomes.itl_s[judged]
    gaps = gaps[np.isfinite(gaps)]
    if len(gaps):
        figures["itl_mean_s"] = float(gaps.mean())
    return figures
