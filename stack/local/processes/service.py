"""One process of the stack and what makes it useful: how it is started, where it listens, when it is ready."""

import os
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from threading import Event
from urllib.parse import urlsplit

from stack.errors import InputError, StackError
from stack.local.processes.kernel_process import listener_on
from stack.local.processes.process import ManagedProcess, Running

POLL_S = 0.3
NEVER = Event()
LOCK_WAIT_S = 60.0


class Kind(StrEnum):
    """What a service is in the stack."""

    REPLICA = "replica"
    GATEWAY = "gateway"
    HISTORY = "history"
    WATCH = "watch"


@dataclass(frozen=True)
class Launch:
    """What to start.

    Attributes:
        command: a program, as a path, and its arguments.
        environment: variables beside those of the caller.
    """

    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)

    def variables(self) -> dict[str, str]:
        """All variables; programs beside the started one are found first, as in an activated virtual environment."""
        found = {**os.environ, **self.environment}
        beside = str(Path(self.command[0]).absolute().parent)
        return {**found, "PATH": os.pathsep.join((beside, found.get("PATH", os.defpath)))}


@dataclass(frozen=True, kw_only=True)
class Service:
    """A managed process of the stack.

    Attributes:
        name: unique in the stack; names its files in the run folder.
        urls: where it listens, the one for people first.
        launch: says what to start now, and writes the files it needs.
        trouble: why it does not serve; None when it does.
        ready_s: longest time from its start until it serves.
        grace_s: longest time from the first signal until it is killed.
        end: the first signal.
    """

    name: str
    kind: Kind
    urls: tuple[str, ...]
    launch: Callable[[], Launch]
    trouble: Callable[[], str | None]
    process: ManagedProcess
    ready_s: float
    grace_s: float = 15.0
    end: signal.Signals = signal.SIGTERM

    def check_ports(self) -> None:
        """See that nobody else has its ports, if it does not run.

        Raises:
            InputError: somebody has.
        """
        if self.process.running() is not None:
            return
        for port in (urlsplit(url).port for url in self.urls):
            if port and (holder := listener_on(port)):
                raise InputError(f"port {port} of {self.name} is taken by {holder}: end it, or configure another port")

    def start(self) -> Running:
        """Start it unless it runs. The caller holds the process.

        Raises:
            InputError: a port is taken, or the program is missing.
        """
        if (present := self.process.running()) is not None:
            return present
        self.process.end_leftovers()
        self.check_ports()
        launch = self.launch()
        return self.process.start(launch.command, launch.variables())

    def wait_ready(self, given_up: Event = NEVER) -> float:
        """Wait until it serves; seconds since its start.

        Args:
            given_up: set when nobody waits any more.

        Raises:
            StackError: it ended, or does not serve in time, or was given up; the text ends with its last log lines.
        """
        while True:
            running = self.process.running()
            if running is None:
                raise StackError(f"{self.name} {self.process.ending()} before it served{self.process.last_lines()}")
            trouble = self.trouble()
            if trouble is None:
                return time.time() - running.since_s
            if time.time() - running.since_s > self.ready_s:
                raise StackError(
                    f"{self.name} did not serve within {self.ready_s:g} s: {trouble}{self.process.last_lines()}"
                )
            if given_up.wait(POLL_S):
                raise StackError(f"{self.name} was not waited for any longer")

    def stop(self) -> bool:
        """End it; whether it went by itself. The caller holds the process."""
        return self.process.stop(self.grace_s, self.end)
