"""A running stack as tests see it."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from harness.action import Action
from stack.clock import WallClock
from stack.layer import Layer
from stack.local.configuration import LocalStack
from stack.local.control import LocalControl
from stack.local.engine.client import EngineClient
from stack.local.processes.supervisor import Supervisor
from stack.reading import Counter
from stack.scrape import scraped

Say: TypeAlias = Callable[[str], None]
"""Shows figures of a test at the end of the run."""


@dataclass(frozen=True)
class Live:
    """The stack, who may write to it, and where it is described.

    Attributes:
        file: the configuration, for commands.
    """

    configuration: LocalStack
    control: LocalControl
    supervisor: Supervisor
    file: Path
    _clients: dict[str, EngineClient] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        return self.configuration.names

    @property
    def url(self) -> str:
        return self.configuration.gateway.url

    def url_of(self, name: str) -> str:
        return self.configuration.replica(name).url

    def engine(self, name: str) -> EngineClient:
        if name not in self._clients:
            self._clients[name] = EngineClient.of(self.configuration, name, writes=True)
        return self._clients[name]

    def close(self) -> None:
        for client in self._clients.values():
            client.close()


def cap_change(target: str, before: float, after: float) -> Action:
    """A change of the running-request cap that a person asks for."""
    return Action(
        setting="running_request_cap",
        target=target,
        before=before,
        after=after,
        cause="asked",
        layer=Layer.BATCHING,
        reason="asked by a person",
        requested_by="operator",
    )


def arrived(live: Live) -> dict[str, float]:
    """Requests that the gateway has sent to each replica so far."""
    found = scraped(f"{live.configuration.gateway.metrics_url}/metrics", WallClock())
    return {one.replica: one.counters[Counter.ARRIVED] for one in found if one.replica in live.names}


PAGE = 1000
"""Most steps in one answer."""


def steps_after(engine: EngineClient, step: int) -> list[dict[str, Any]]:
    """The engine's record of its steps after one, up to now."""
    found: list[dict[str, Any]] = []
    while True:
        rows = engine.steps(found[-1]["step"] if found else step, PAGE)["steps"]
        found += rows
        if len(rows) < PAGE:
            return found


def within(seconds: float, what: str, condition: Callable[[], bool], poll_s: float = 0.2) -> float:
    """Wait for it; how long it took."""
    begun_s = time.monotonic()
    while not condition():
        assert time.monotonic() < begun_s + seconds, f"not within {seconds:g} s: {what}"
        time.sleep(poll_s)
    return time.monotonic() - begun_s
