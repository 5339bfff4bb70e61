"""Whether an engine gets on with its work. A wedged one keeps its port open and its `/health` at 200."""

from collections.abc import Mapping
from dataclasses import dataclass

import httpx

from stack.clock import WallClock
from stack.errors import InputError, UnreachableError
from stack.reading import Counter, Distribution, Gauge
from stack.redaction import place_of
from stack.scrape import scraped

TIMEOUT = httpx.Timeout(3.0, connect=1.0)
_TOKENS = (Counter.PROMPT_TOKENS, Counter.GENERATION_TOKENS)
_STEPS = Distribution.STEP_TOKENS
_NO_PLUGIN = {httpx.codes.NOT_FOUND, httpx.codes.FORBIDDEN, httpx.codes.NOT_IMPLEMENTED}


@dataclass(frozen=True)
class Progress:
    """One look at an engine.

    Attributes:
        working: it has requests, running or waiting.
        mark: anything that changes with every step: the step number, or token counters.
    """

    working: bool
    mark: tuple[float, ...]


def progress(url: str, access: Mapping[str, str]) -> Progress | None:
    """How far the engine at `url` is; None when it does not say.

    The plugin asks the engine itself. Without it the API server's gauges and counters must do, which show what the
    engine said after its last step.

    Args:
        access: headers that open the plugin's routes; see `LocalStack.engine_access`.
    """
    try:
        answer = httpx.get(
            f"{url}/flashvector/steps", params={"last": 1}, headers=access, timeout=TIMEOUT, trust_env=False
        )
        if answer.status_code == httpx.codes.OK:
            state = answer.json()
            return Progress(int(state["running"]) + int(state["waiting"]) > 0, (float(state["step"]),))
    except (httpx.HTTPError, ValueError, KeyError, TypeError):
        return None
    return _shown(url) if answer.status_code in _NO_PLUGIN else None


def death(url: str) -> str | None:
    """Why the process behind `url`, which has served, will not again; None where that cannot be said.

    A vLLM API server that lost its engine answers `/health` with 503, or has closed its port and waits for its last
    connections to end.
    """
    name = place_of(url)
    try:
        status = httpx.get(f"{url}/health", timeout=TIMEOUT, trust_env=False).status_code
    except httpx.ConnectError:
        return f"{name} runs and listens no longer"
    except httpx.HTTPError:
        return None
    return f"{name} says that its engine is dead" if status == httpx.codes.SERVICE_UNAVAILABLE else None


def _shown(url: str) -> Progress | None:
    try:
        readings = scraped(f"{url}/metrics", WallClock())
    except (UnreachableError, InputError):
        return None
    requests = sum(one.gauges.get(gauge, 0.0) for one in readings for gauge in (Gauge.RUNNING, Gauge.WAITING))
    tokens = [sum(one.counters.get(name, 0.0) for one in readings) for name in _TOKENS]
    steps = sum(one.histograms[_STEPS].count for one in readings if _STEPS in one.histograms)
    return Progress(requests > 0, (*tokens, steps))


class Heartbeat:
    """What an engine's looks add up to.

    Args:
        url: of the engine, for messages.
        stuck_s: without a step or an answer for so long, it is not alive.
    """

    def __init__(self, url: str, stuck_s: float) -> None:
        self._name, self._stuck_s = place_of(url), stuck_s
        self._moved_s: float | None = None
        self._mark: tuple[float, ...] | None = None

    def trouble(self, look: Progress | None, now_s: float) -> str | None:
        """Why it is not alive; None when it is.

        Args:
            look: the newest; None when it did not say.
            now_s: any clock that only goes forward.
        """
        moved = look is not None and (not look.working or look.mark != self._mark)
        if look is not None:
            self._mark = look.mark
        if moved or self._moved_s is None:
            self._moved_s = now_s
        silent_s = now_s - self._moved_s
        if silent_s < self._stuck_s:
            return None
        what = "does not say how far it is" if look is None else "has work and finishes no step"
        return f"{self._name} {what} for {silent_s:.0f} s"
