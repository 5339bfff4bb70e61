"""Step times of one replica, learnt from ordinary traffic: what the engine's record of steps says they take.

The plugin's record (`GET /flashvector/steps`) has the moment at which each step was scheduled and what was in it. The
time to the next one is what it took. A few steps of every kind are remembered, so that an hour of equal batches does
not displace the one minute in which there were others.
"""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from stack.errors import InputError
from stack.setting import Value
from stack.simulator.hardware.measured import (
    BASE_MS,
    BATCH_MAX,
    BATCH_MIN,
    ERROR_RATIO,
    FIT,
    KV_BLOCK_MS,
    LAG,
    MAX_SEQUENCES,
    MAX_TOKENS,
    OK,
    SEEN,
    SEQUENCE_MS,
    TOKEN_MS,
    TOKENS_MAX,
)
from stack.simulator.hardware.step_fit import SeenSteps, StepFit, error_ratio, fitted

REMEMBERED_S = 1_800.0
"""Older steps tell of another time: clocks, neighbours on the machine, another engine build."""
PURE_KEPT, MIXED_KEPT = 256, 128
"""Steps remembered of each kind: pure decode, which most steps are, and with prompt tokens."""
STALLED_S = 10.0
"""Two steps that far apart have something else than a step between them."""
STEPS_MIN = 40
KINDS_MIN = 3
SPREAD_MIN = 2.0
"""Largest over smallest number of tokens in a step, below which times at other sizes are a guess."""
LIMITS = {MAX_SEQUENCES: "running_request_cap", MAX_TOKENS: "tokens_per_step"}
"""What an engine was started with, by the names of the plugin's limits."""
LAG_GAIN = 0.8
"""Scheduling ahead is believed where it explains the times with at most this share of the error."""


class Seen(NamedTuple):
    """A step with its time, and the one before it.

    Attributes:
        duration_ms: to the next step's scheduling.
        tokens, sequences, kv_blocks: what it held; `before_*` the same of the step before.
    """

    time_s: float
    duration_ms: float
    tokens: float
    sequences: float
    kv_blocks: float
    before_tokens: float
    before_sequences: float
    before_kv_blocks: float


class StepTimes:
    """What one engine's steps take. Memory is bounded; another engine process starts anew."""

    def __init__(self) -> None:
        self._kinds: dict[tuple[int, int], deque[Seen]] = {}
        self._tail: list[Mapping[str, Any]] = []
        self._boot: dict[str, float] = {}
        self._newest_s = 0.0

    @property
    def since(self) -> int:
        """The newest step known, for the next `?since=`; 0 at first."""
        return int(self._tail[-1]["step"]) if self._tail else 0

    def add(self, document: Mapping[str, Any]) -> None:
        """Learn from an answer of `GET /flashvector/steps?since=N&last=1000`; known steps are passed over.

        Raises:
            InputError: it is not such an answer; nothing is learnt from it, and nothing forgotten.
        """
        try:
            again = float(document.get("step", self.since)) < self.since
            chain = [*([] if again else self._tail), *_fresh(document, -1 if again else self.since)]
            timed = list(_timed(chain))
            boot = {name: float(document.get("boot", {})[limit]) for name, limit in _limits(document)}
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError(f"expected an engine's record of steps, found another form: {error!r}") from error
        if again:
            self._kinds.clear()
            self._newest_s = 0.0
        self._boot = boot or self._boot
        for seen in timed:
            self._keep(seen)
        self._tail = chain[-2:]

    def facts(self) -> dict[str, Value]:
        """What was learnt, for `Snapshot.configuration`; the keys are explained in docs/forecast.md.

        Without enough steps, or with all of them alike, `step_fit` says so and there are no times.
        """
        facts: dict[str, Value] = dict(self._boot)
        if rows := self._rows():
            facts |= _facts(rows)
        return facts

    def _keep(self, seen: Seen) -> None:
        self._newest_s = max(self._newest_s, seen.time_s)
        kind = _kind(seen)
        kept = PURE_KEPT if kind[1] == 0 else MIXED_KEPT
        self._kinds.setdefault(kind, deque(maxlen=kept)).append(seen)

    def _rows(self) -> list[Seen]:
        """Steps that still count; kinds that were not seen for long are forgotten."""
        from_s = self._newest_s - REMEMBERED_S
        for kind, held in list(self._kinds.items()):
            while held and held[0].time_s < from_s:
                held.popleft()
            if not held:
                del self._kinds[kind]
        return [seen for held in self._kinds.values() for seen in held]


def _fresh(document: Mapping[str, Any], since: int) -> list[Mapping[str, Any]]:
    return [step for step in document.get("steps", ()) if step["step"] > since]


def _limits(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(name, limit) for name, limit in LIMITS.items() if limit in document.get("boot", {})]


def _timed(chain: Sequence[Mapping[str, Any]]) -> Iterator[Seen]:
    """Steps with known neighbours. One without tokens only ends requests, and idle time may follow it."""
    for (before, step), (_, after) in pairwise(pairwise(chain)):
        took_s = after["time_s"] - step["time_s"]
        follow = before["step"] + 1 == step["step"] == after["step"] - 1
        if follow and step["tokens"] > 0 and 0 < took_s < STALLED_S:
            yield Seen(step["time_s"], 1e3 * took_s, *_content(step), *_content(before))


def _content(step: Mapping[str, Any]) -> tuple[float, float, float]:
    blocks = float(step["kv_usage"]) * float(step["limits"]["usable_kv_blocks"])
    return float(step["tokens"]), float(step["running"]), blocks


def _kind(seen: Seen) -> tuple[int, int]:
    """Steps of one kind have about the same batch and the same prompt tokens, by powers of 2^(1/4) and 2."""
    batch = seen.sequences if seen.sequences <= 8 else 8 + 4 * np.log2(seen.sequences / 8)
    prompt = max(0.0, seen.tokens - seen.sequences)
    return int(batch), int(1 + np.log2(prompt)) if prompt else 0


def _facts(rows: Sequence[Seen]) -> dict[str, Value]:
    columns, numbered = np.array(rows).T, _numbered(rows)
    lag, fit, steps = _best(columns)
    kinds, tokens = int(numbered.max()) + 1, steps.tokens
    seen: dict[str, Value] = {
        SEEN: float(len(rows)),
        BATCH_MIN: float(steps.sequences.min()),
        BATCH_MAX: float(steps.sequences.max()),
        TOKENS_MAX: float(tokens.max()),
    }
    if len(rows) < STEPS_MIN or kinds < KINDS_MIN or tokens.max() < SPREAD_MIN * tokens.min():
        few = f"{len(rows)} steps of {kinds} kinds with {tokens.min():g} to {tokens.max():g} tokens"
        return {**seen, FIT: f"too narrow: {few}"}
    return {
        **seen,
        FIT: OK,
        BASE_MS: fit.base_ms,
        TOKEN_MS: fit.token_ms,
        SEQUENCE_MS: fit.sequence_ms,
        KV_BLOCK_MS: fit.kv_block_ms,
        ERROR_RATIO: error_ratio(steps, numbered),
        LAG: float(lag),
    }


def _numbered(rows: Sequence[Seen]) -> np.ndarray:
    """The kind of each step, as a number from 0 on."""
    numbers: dict[tuple[int, int], int] = {}
    return np.array([numbers.setdefault(_kind(seen), len(numbers)) for seen in rows])


def _best(columns: np.ndarray) -> tuple[int, StepFit, SeenSteps]:
    """With scheduling one step ahead a step's time is seen one step late: whichever way explains the times better."""
    own, before = SeenSteps(columns[1], *columns[2:5]), SeenSteps(columns[1], *columns[5:8])
    fits = fitted(own), fitted(before)
    if fits[1].miss(before) < LAG_GAIN * fits[0].miss(own):
        return 1, fits[1], before
    return 0, fits[0], own
