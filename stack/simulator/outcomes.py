"""What became of every request: the figures a run is scored by."""

from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from stack.simulator.engine import layout
from stack.simulator.engine.layout import Floats, World


class Status(IntEnum):
    """How far a request has come; the last four are final."""

    COMING = layout.COMING
    AT_GATEWAY = layout.AT_GATEWAY
    WAITING = layout.WAITING
    RUNNING = layout.RUNNING
    FINISHED = layout.FINISHED
    SHED = layout.SHED
    LOST = layout.LOST
    REJECTED = layout.REJECTED


class Limits(Protocol):
    """The limits that make a request good."""

    @property
    def ttft_s(self) -> float:
        """Time to first token of an empty prompt."""
        ...

    @property
    def ttft_s_per_prompt_token(self) -> float:
        """Added allowance per prompt token."""
        ...

    @property
    def itl_s(self) -> float:
        """Mean time between a request's tokens."""
        ...


@dataclass(frozen=True)
class CommonLimits:
    """One second plus a tenth of a millisecond per prompt token to the first token, 50 ms between tokens."""

    ttft_s: float = 1.0
    ttft_s_per_prompt_token: float = 1e-4
    itl_s: float = 0.05


@dataclass(frozen=True, eq=False)
class Outcomes:
    """One entry per request, in order of arrival; NaN where a time does not exist (yet).

    Attributes:
        ttft_s, e2e_s: as the client sees them, from arrival at the gateway.
        itl_s: mean time between tokens; NaN for a single token.
        status: see `Status`.
        replica: index, -1 for none.
    """

    arrival_s: Floats
    ttft_s: Floats
    e2e_s: Floats
    itl_s: Floats
    status: NDArray[np.int64]
    is_batch: NDArray[np.bool_]
    prompt_tokens: NDArray[np.int64]
    output_tokens: NDArray[np.int64]
    replica: NDArray[np.int64]

    def good(self, limits: Limits, batch_limit_s: float) -> NDArray[np.bool_]:
        """Whether each request finished within its limits; a batch request has one limit, on its whole time."""
        finished = self.status == Status.FINISHED
        allowed_s = limits.ttft_s + limits.ttft_s_per_prompt_token * self.prompt_tokens
        with np.errstate(invalid="ignore"):
            interactive = (self.ttft_s <= allowed_s) & (np.isnan(self.itl_s) | (self.itl_s <= limits.itl_s))
            batch = self.e2e_s <= batch_limit_s
        good: NDArray[np.bool_] = finished & np.where(self.is_batch, batch, interactive)
        return good


def outcomes_of(world: World) -> Outcomes:
    """A copy of the figures at this moment."""
    request, time_s = world.request, np.where(world.time_s < 0, np.nan, world.time_s)
    arrived, output = time_s[:, layout.ARRIVED_S], request[:, layout.OUTPUT]
    ended = request[:, layout.STATUS] == layout.FINISHED
    done = np.where(ended, time_s[:, layout.DONE_S], np.nan)
    gaps = np.where(output > 1, output - 1.0, np.nan)
    return Outcomes(
        arrival_s=arrived,
        ttft_s=time_s[:, layout.SEEN_S] - arrived,
        e2e_s=done - arrived,
        itl_s=(done - time_s[:, layout.FIRST_S]) / gaps,
        status=request[:, layout.STATUS].copy(),
        is_batch=request[:, layout.IS_BATCH] == 1,
        prompt_tokens=request[:, layout.PROMPT].copy(),
        output_tokens=output.copy(),
        replica=request[:, layout.REPLICA].copy(),
    )
