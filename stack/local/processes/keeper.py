"""Keeps one service alive: brings it back when it ended or is stuck, and gives it back the values it lost."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from stack.errors import FlashVectorError
from stack.local.processes.events import Tell, What
from stack.local.processes.kernel_process import Identity
from stack.local.processes.process import Running
from stack.local.processes.run_files import write_whole
from stack.local.processes.service import Service

FIRST_WAIT_S = 1.0
LONGEST_WAIT_S = 60.0
STEADY_S = 120.0
"""A service that has served for so long starts the back-off from its beginning."""

Beat = Callable[[], str | None]
"""Why a serving process is not alive; None when it is."""
Restore = Callable[[], tuple[list[str], list[str]]]
"""Writes lost values again; what was restored and what was not."""


@dataclass
class _Standing:
    """What the keeper knows of one process since it saw it first."""

    identity: Identity
    seen_s: float
    served_s: float | None = None
    beat: Beat | None = None


class Keeper:
    """Watches one service.

    Args:
        service: what is kept alive.
        new_beat: makes the check for a new process; None: its own life is all there is to check.
        restore: gives back what a restart lost.
        tell: hears what happens.
        folder: where is noted which process has served.
    """

    def __init__(
        self, service: Service, new_beat: Callable[[], Beat] | None, restore: Restore, tell: Tell, folder: Path
    ) -> None:
        self.service = service
        self._new_beat, self._restore, self._tell = new_beat, restore, tell
        self._mark = folder / f"{service.name}.served"
        self._standing: _Standing | None = None
        self._wait_s, self._not_before_s = FIRST_WAIT_S, 0.0

    def tick(self) -> None:
        """Look once and do what is due. Does nothing while somebody else starts or stops the service."""
        with self.service.process.held() as ours:
            if not ours:
                self._standing = None
                return
            running = self.service.process.running()
            if running is None:
                self._bring_back(self._loss())
            elif (trouble := self._trouble(running)) is not None:
                self.service.process.stop(grace_s=1.0)
                self._bring_back(trouble)

    def _loss(self) -> str | None:
        """What to say of a process that is not there; None when it was never started or stopped on purpose."""
        if self.service.process.record() is None:
            return None
        return f"{self.service.name} {self.service.process.ending()}{self.service.process.last_lines()}"

    def _trouble(self, running: Running) -> str | None:
        if self._standing is None or self._standing.identity != running.identity:
            self._standing = self._first_seen(running.identity)
        if self._standing.served_s is None:
            return self._not_ready(self._standing)
        if time.monotonic() - self._standing.served_s > STEADY_S:
            self._wait_s = FIRST_WAIT_S
        return self._standing.beat() if self._standing.beat else None

    def _first_seen(self, identity: Identity) -> _Standing:
        """A process that is known to have served is not asked for a token again: under load that takes its time."""
        standing = _Standing(identity, time.monotonic())
        if self._is_marked(identity):
            self._serves(standing)
        return standing

    def _serves(self, standing: _Standing) -> None:
        standing.served_s = time.monotonic()
        standing.beat = self._new_beat() if self._new_beat else None

    def _not_ready(self, standing: _Standing) -> str | None:
        trouble = self.service.trouble()
        if trouble is None:
            self._serves(standing)
            self._tell(What.READY, self.service.name, f"{self.service.name} serves at {self.service.urls[0]}")
            self._give_back(standing.identity)
        elif time.monotonic() - standing.seen_s > self.service.ready_s:
            return f"{trouble}, {self.service.ready_s:g} s after its start{self.service.process.last_lines()}"
        return None

    def _bring_back(self, loss: str | None) -> None:
        if loss is not None and self._standing is not None:
            what = What.NOT_READY if self._standing.served_s is None else What.LOST
            self._tell(what, self.service.name, loss)
        elif loss is not None and self._not_before_s == 0.0:
            self._tell(What.LOST, self.service.name, loss)
        self._standing = None
        if time.monotonic() < self._not_before_s:
            return
        self._not_before_s = time.monotonic() + self._wait_s
        self._wait_s = min(2 * self._wait_s, LONGEST_WAIT_S)
        running = self.service.start()
        self._standing = _Standing(running.identity, time.monotonic())
        self._tell(What.STARTED, self.service.name, f"{self.service.name} started as pid {running.identity.pid}")

    def _give_back(self, identity: Identity) -> None:
        try:
            restored, failed = self._restore()
        except FlashVectorError as error:
            restored, failed = [], [str(error)]
        for text in restored:
            self._tell(What.RESTORED, self.service.name, text)
        for text in failed:
            self._tell(What.NOT_RESTORED, self.service.name, text)
        write_whole(self._mark, _text_of(identity))

    def _is_marked(self, identity: Identity) -> bool:
        """Whether this very process has served and got its values, also before the watcher was restarted."""
        return self._mark.exists() and self._mark.read_text(encoding="utf-8") == _text_of(identity)


def _text_of(identity: Identity) -> str:
    return f"{identity.boot_id} {identity.pid} {identity.start_ticks}\n"
