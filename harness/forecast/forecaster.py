"""What a change would do: the simulator, calibrated on what the live metrics show and on nothing else."""

import math
import statistics
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from harness.action import Action, Forecast, Predicted, Trust
from harness.forecast.calibration import SCALE_BOUNDS, step_scales
from harness.forecast.load import load_of
from harness.forecast.rehearsal import Belief, Change, Figures, rehearse
from harness.objective import Slo
from harness.outcome import Verification
from stack.errors import FlashVectorError
from stack.setting import SettingClass
from stack.simulator.fleet import FleetSpec
from stack.simulator.hardware.gpu import GPUS, known_models
from stack.simulator.hardware.step_times import usual_precision
from stack.snapshot import Signal, Snapshot

HORIZON_S = 60.0
SEEDS = (11, 12, 13)
WIDENING = 1.5
"""The seeds' spread knows nothing of the model's own error; measured coverage sets this factor."""
LOAD_SNAPSHOTS = 8
RECORD = 10
"""Predictions whose measured outcome decides over trust."""
RIGHT_SIGN_MIN_RATIO = 0.6


@dataclass(frozen=True)
class Record:
    """A prediction beside what was measured: ratios of after to before, below 1 for an improvement of latency."""

    metric: str
    predicted_ratio: float
    measured_ratio: float

    @property
    def same_sign(self) -> bool:
        """Whether both say better or both say worse."""
        return (self.predicted_ratio - 1.0) * (self.measured_ratio - 1.0) >= 0


class Forecaster:
    """Answers what-if questions, and remembers how right it was."""

    def __init__(self, slo: Slo) -> None:
        self._slo = slo
        self._recent: deque[Snapshot] = deque(maxlen=LOAD_SNAPSHOTS)
        self._records: deque[Record] = deque(maxlen=RECORD)
        self._believed: tuple[Snapshot, Belief | None] | None = None

    def observe(self, snapshot: Snapshot) -> None:
        """Learn from a snapshot; those that overlap the last one are passed over."""
        last = self._recent[-1] if self._recent else None
        if last is None or last.time_s is None or not snapshot.begins_before(last.time_s):
            self._recent.append(snapshot)

    def forecast(self, action: Action, snapshot: Snapshot) -> Forecast | None:
        """Predicted effect of `action`; None when load, fleet or settings are unknown or it takes a restart."""
        if action.declaration.setting_class is SettingClass.C:
            return None
        belief = self._belief(snapshot)
        if belief is None:
            return None
        change = Change(action.setting, action.target, action.after)
        try:
            pairs = [rehearse(belief, change, horizon_s=HORIZON_S, seed=seed) for seed in SEEDS]
        except FlashVectorError:
            return None
        trust, note = self._trust(belief)
        return Forecast(HORIZON_S, _effects(pairs), trust, note)

    def record(self, action: Action, verification: Verification | None) -> None:
        """Store predicted against measured, wherever both exist."""
        if action.forecast is None or verification is None:
            return
        for metric, predicted in action.forecast.effects.items():
            measured = verification.metrics.get(metric)
            if measured is not None and "ratio" in measured and predicted.before > 0:
                self._records.append(Record(metric, predicted.after / predicted.before, measured["ratio"]))

    @property
    def records(self) -> tuple[Record, ...]:
        """The latest predictions beside what was measured, oldest first."""
        return tuple(self._records)

    def _trust(self, belief: Belief) -> tuple[Trust, str]:
        low, high = SCALE_BOUNDS
        if any(not low < scale < high for scale in belief.step_scale):
            return Trust.DOUBTED, "the stack's token times are outside the range of the step-time tables"
        right = sum(record.same_sign for record in self._records)
        if len(self._records) >= 3 and right < RIGHT_SIGN_MIN_RATIO * len(self._records):
            return Trust.DOUBTED, f"only {right} of the last {len(self._records)} predictions had the right sign"
        return Trust.TRUSTED, f"calibrated on {belief.load.arrivals_per_s:.1f} req/s as measured"

    def _belief(self, snapshot: Snapshot) -> Belief | None:
        if self._believed is None or self._believed[0] is not snapshot:
            self._believed = (snapshot, self._calibrated(snapshot))
        return self._believed[1]

    def _calibrated(self, snapshot: Snapshot) -> Belief | None:
        load, fleet = load_of(self._recent or [snapshot]), fleet_of(snapshot, self._slo)
        if load is None or fleet is None or not snapshot.settings:
            return None
        now_per_s = snapshot.per_s(Signal.ARRIVED)
        if now_per_s:
            load = replace(load, arrivals_per_s=now_per_s)
        return Belief(fleet, step_scales(fleet, snapshot), snapshot.settings, load, self._slo, backlog_of(snapshot))


def backlog_of(snapshot: Snapshot) -> tuple[int, ...]:
    """Requests on each replica beyond what its load explains: those waiting, and its running ones above the median."""
    names = sorted(snapshot.replicas)
    running = [snapshot.value(Signal.RUNNING, name) or 0.0 for name in names]
    usual = statistics.median(running) if running else 0.0
    waiting = [snapshot.value(Signal.WAITING, name) or 0.0 for name in names]
    queued = (snapshot.value(Signal.GATEWAY_QUEUE) or 0.0) / max(1, len(names))
    return tuple(int(w + queued + max(0.0, r - usual)) for w, r in zip(waiting, running, strict=True))


def fleet_of(snapshot: Snapshot, slo: Slo) -> FleetSpec | None:
    """The fleet as the engines describe themselves; None when the model or GPU is not in the step-time tables."""
    described = next((facts for _, facts in sorted(snapshot.configuration.items()) if "model_name" in facts), {})
    model = _known(known_models(), described.get("model_name"))
    gpu = described.get("gpu")
    blocks = described.get("num_gpu_blocks")
    if model is None or gpu not in GPUS:
        return None
    try:
        return FleetSpec(
            model=model,
            gpu=str(gpu),
            tensor_parallel=int(float(described.get("gpu_count", 1))),
            precision=str(described.get("precision", usual_precision(model))),
            replicas=len(snapshot.replicas),
            kv_blocks=None if blocks is None else int(float(blocks)),
            ttft_limit_s=slo.ttft_s,
            ttft_limit_s_per_token=slo.ttft_s_per_prompt_token,
        )
    except FlashVectorError:
        return None


def _known(models: Mapping[str, object], name: object) -> str | None:
    for key, model in models.items():
        if name in (key, getattr(model, "repository", None)):
            return key
    return None


def _effects(pairs: Sequence[tuple[Figures, Figures]]) -> dict[str, Predicted]:
    names = set.intersection(*(set(figures) for pair in pairs for figures in pair))
    return {name: _predicted([(a[name], c[name]) for a, c in pairs], _ceiling(name)) for name in sorted(names)}


def _ceiling(name: str) -> float:
    return 1.0 if name.endswith(("_share", "_ratio")) else math.inf


def _predicted(values: Sequence[tuple[float, float]], ceiling: float) -> Predicted:
    before = sum(b for b, _ in values) / len(values)
    after = sum(a for _, a in values) / len(values)
    moves = [a - b for b, a in values]
    spread = WIDENING * (max(moves) - min(moves)) / 2
    return Predicted(before, after, max(0.0, after - spread), min(ceiling, after + spread))
