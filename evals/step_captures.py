"""Captures of a real stack whose cap on running requests was changed, and forecasts of these changes.

A capture holds what a reader would have seen (scrapes of engines and gateway, the engines' records of steps), when the
cap was changed to what, and what became of every request. A forecast sees nothing from after the change.
"""

import json
import lzma
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any

from harness.action import Action, Forecast
from harness.forecast.forecaster import Forecaster
from harness.objective import Slo
from stack.exposition import readings_in
from stack.layer import Layer
from stack.local.engine.step_times import StepTimes
from stack.reading import Reading
from stack.setting import Value
from stack.snapshot import FLEET, Signal, Snapshot
from stack.window import snapshot_of

WINDOW_S = 30.0
ANSWER_STEPS = 1000
"""Steps in one answer of the plugin."""
LOAD = ("rate", "users", "prompt", "output", "think_s")
SLO = Slo()


@dataclass(frozen=True)
class CapChange:
    """A change of the cap on every replica under a load that stays as it is.

    Attributes:
        at_s, until_s: when it was made, and when the next one came or the capture ended.
    """

    before: float
    after: float
    at_s: float
    until_s: float
    load: Mapping[str, Any]


@dataclass(frozen=True)
class Capture:
    """One file; `told` is its JSON document."""

    name: str
    told: Mapping[str, Any]

    @property
    def replicas(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(sorted(self.told["steps"]))

    def changes(self) -> list[CapChange]:
        """All of them, in order."""
        return [
            CapChange(one["cap"], two["cap"], two["from_s"], two["to_s"], _load(two))
            for one, two in zip(self.told["segments"], self.told["segments"][1:], strict=False)
            if _load(one) == _load(two) and one["cap"] != two["cap"]
        ]

    def readings(self, from_s: float, until_s: float) -> list[Reading]:
        """What scrapes in [from_s, until_s] showed."""
        return [reading for time_s, scrape in self._scrapes if from_s <= time_s <= until_s for reading in scrape]

    def step_times(self, replica: str, until_s: float, from_s: float = 0.0) -> dict[str, Value]:
        """What a reader that asked the plugin now and then had learnt of a replica by `until_s`."""
        learnt, steps = StepTimes(), [step for step in self._steps(replica) if from_s <= step["time_s"] < until_s]
        for first in range(0, len(steps), ANSWER_STEPS):
            part = steps[first : first + ANSWER_STEPS]
            learnt.add({"step": part[-1]["step"], "boot": self.told["boot"], "steps": part})
        return learnt.facts()

    @cached_property
    def _scrapes(self) -> list[tuple[float, list[Reading]]]:
        return [
            (
                time_s,
                [reading for source, lines in self.told["series"].items() for reading in _at(lines, source, k, time_s)],
            )
            for k, time_s in enumerate(self.told["scrape_s"])
        ]

    def _steps(self, replica: str) -> Iterator[dict[str, Any]]:
        told, usable = self.told["steps"][replica], self.told["usable_kv_blocks"]
        times = accumulate(told["time_diff_01ms"])
        columns = zip(times, told["running"], told["waiting"], told["tokens"], told["kv_blocks"], strict=True)
        for number, (time, running, waiting, tokens, blocks) in enumerate(columns, start=told["first"]):
            yield {
                "step": number,
                "time_s": told["from_s"] + 1e-4 * time,
                "running": running,
                "waiting": waiting,
                "tokens": tokens,
                "kv_usage": blocks / usable,
                "limits": {"usable_kv_blocks": usable},
            }


@dataclass(frozen=True)
class Figures:
    """What was seen or predicted of a stretch of time: requests finished per second, mean time between tokens."""

    finished_per_s: float
    itl_mean_s: float


def read_capture(path: Path) -> Capture:
    """The capture in an .xz file."""
    with lzma.open(path, "rt", encoding="utf-8") as text:
        return Capture(path.name.removesuffix(".json.xz"), json.load(text))


def forecast_of(capture: Capture, change: CapChange) -> Forecast:
    """The forecast of a change from what was seen before it."""
    forecaster = Forecaster(SLO)
    seen = list(snapshots(capture, change))
    for snapshot in seen:
        forecaster.observe(snapshot)
    action = Action(
        setting="running_request_cap",
        target=FLEET,
        before=change.before,
        after=change.after,
        cause="",
        layer=Layer.BATCHING,
        reason="",
    )
    return forecaster.forecast(action, seen[-1])


def snapshots(capture: Capture, change: CapChange) -> Iterator[Snapshot]:
    """Windows before the change under the same load and cap, oldest first, with the step times known by then."""
    begin_s = next(one["from_s"] for one in capture.told["segments"] if abs(one["to_s"] - change.at_s) < 10.0)
    count = int((change.at_s - begin_s) // WINDOW_S)
    for index in range(count, 0, -1):
        end_s = change.at_s - (index - 1) * WINDOW_S
        settings = {"running_request_cap": dict.fromkeys(capture.replicas, float(change.before))}
        readings = capture.readings(end_s - WINDOW_S - 2.6, end_s)
        yield _with_step_times(snapshot_of(readings, window_s=None, settings=settings), capture, change.at_s)


def came(capture: Capture, change: CapChange) -> Figures:
    """What the metrics showed from the change on."""
    snapshot = snapshot_of(capture.readings(change.at_s - 2.6, change.until_s), window_s=None)
    finished, token_s = snapshot.per_s(Signal.FINISHED), snapshot.value(Signal.ITL_MEAN_S)
    return Figures(finished or 0.0, token_s or 0.0)


def _with_step_times(snapshot: Snapshot, capture: Capture, until_s: float) -> Snapshot:
    known = {
        name: {**facts, **(capture.step_times(name, until_s) if name in capture.replicas else {})}
        for name, facts in snapshot.configuration.items()
    }
    return replace(snapshot, configuration=known)


def _load(segment: Mapping[str, Any]) -> dict[str, Any]:
    return {name: segment[name] for name in LOAD if name in segment}


def _at(lines: Mapping[str, float | Sequence[float]], source: str, k: int, time_s: float) -> list[Reading]:
    values = {key: one[k] if isinstance(one, list) else one for key, one in lines.items()}
    text = "".join(f"{key} {value}\n" for key, value in values.items() if value is not None)
    return readings_in(text, source, time_s=time_s, replica=None if source == "gateway" else source)
