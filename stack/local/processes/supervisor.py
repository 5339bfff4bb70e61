"""The stack's processes as a whole: up, status, down, restart."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Event

from stack.errors import FlashVectorError, InputError, StackError
from stack.local.configuration import LocalStack
from stack.local.processes.events import EventLog, Tell, What
from stack.local.processes.program import program
from stack.local.processes.replica_process import profile_file
from stack.local.processes.rolling_restart import Gate, Limits, RestartableReplica, Restarted, RollingRestart
from stack.local.processes.service import Kind, Service
from stack.local.processes.services import services, watch_service

LOCK_WAIT_S = 60.0


@dataclass(frozen=True)
class Status:
    """One service now.

    Attributes:
        name, kind, url: which one, and where it listens; the watcher has no address.
        managed: whether we start and stop it.
        pid, since_s: the process, and when it was started; None when it does not run, or is not ours.
        trouble: why it does not serve; None when it does.
        profile: of a replica that we manage.
    """

    name: str
    kind: Kind
    url: str | None
    managed: bool
    pid: int | None
    since_s: float | None
    trouble: str | None
    profile: str | None


class Supervisor:
    """Starts and stops what the configuration describes.

    Args:
        stack: the configuration.
        watch_command: what runs the watcher for it.

    Raises:
        InputError: the run folder is a file.
    """

    def __init__(self, stack: LocalStack, watch_command: Sequence[str]) -> None:
        if stack.run_folder.exists() and not stack.run_folder.is_dir():
            raise InputError(f"run_folder: expected a folder at {stack.run_folder}, found a file")
        self.stack = stack
        self.events = EventLog(stack.run_folder)
        self._services = services(stack)
        self._watch = watch_service(stack, watch_command)

    def up(self, say: Callable[[str], None]) -> None:
        """Start all that does not run, wait until each serves, then watch over them.

        Args:
            say: hears one line for each service.

        Raises:
            InputError: a program is missing, a port is taken, or the run folder cannot be made; nothing was started.
            StackError: something does not serve, or the waiting was interrupted; what was started runs on.
        """
        self._make_folder()
        wanted = [service for service in self._services if self._can_start(service, say)]
        for service in wanted:
            with service.process.held(LOCK_WAIT_S):
                if service.process.running() is None:
                    service.process.end_leftovers()
                    service.check_ports()
                    service.launch()
        troubles = self._all_up(wanted, say)
        if troubles:
            raise StackError("\n".join(troubles) + "\nwhat was started runs on; flashvector stack down ends it")
        self._started(self._watch)

    def down(self, say: Callable[[str], None]) -> None:
        """End all: first who would bring them back, then user traffic, then the rest.

        Args:
            say: hears one line for each service.
        """
        if not self.stack.run_folder.exists():
            return
        self._down(self._watch, say)
        for kinds in ({Kind.GATEWAY}, {Kind.REPLICA, Kind.HISTORY}):
            chosen = [service for service in self._services if service.kind in kinds]
            with ThreadPoolExecutor(max_workers=len(chosen) + 1) as threads:
                list(threads.map(lambda one: self._down(one, say), chosen))

    def status(self) -> list[Status]:
        """Each service, those we do not manage included."""
        with ThreadPoolExecutor() as threads:
            return list(threads.map(self._status_of, (*self._services, self._watch)))

    def restart(
        self, names: Sequence[str], profile: str | None, gate: Gate, limits: Limits, tell: Tell
    ) -> list[Restarted]:
        """Restart replicas one at a time, without a failed request; all of them when `names` is empty.

        Raises:
            InputError: no such replica or profile.
            RefusedError, StackError: as RollingRestart.restart.
        """
        replicas = {
            service.name: RestartableReplica(service, profile_file(self.stack, service.name))
            for service in self._services
            if service.kind is Kind.REPLICA
        }
        for name in names:
            if self.stack.replica(name).name not in replicas:
                raise InputError(f"{name} is not managed by us: whoever started it must restart it")
        rolling = RollingRestart(replicas, gate, limits, self.stack.engine.drain_s, tell)
        return rolling.restart(names or list(replicas), profile)

    def _make_folder(self) -> None:
        folder = self.stack.run_folder
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise InputError(f"run_folder: {folder} cannot be made: {error.strerror}") from error

    def _all_up(self, wanted: Sequence[Service], say: Callable[[str], None]) -> list[str]:
        """What is wrong with those that do not serve. Ctrl-C ends the waiting, not what was started."""
        given_up = Event()
        with ThreadPoolExecutor(max_workers=len(wanted) + 1) as threads:
            try:
                found = threads.map(lambda one: self._up(one, say, given_up), wanted)
                return [trouble for trouble in found if trouble]
            except KeyboardInterrupt:
                given_up.set()
                raise StackError(
                    "interrupted: what was started runs on, unwatched; flashvector stack up goes on, stack down ends it"
                ) from None

    def _can_start(self, service: Service, say: Callable[[str], None]) -> bool:
        """History may be missing; every other program may not."""
        if service.kind is not Kind.HISTORY or self.stack.history is None:
            return True
        try:
            program(self.stack.history.command)
        except InputError as error:
            say(f"{service.name}: {error}; the stack runs without history")
            return False
        return True

    def _up(self, service: Service, say: Callable[[str], None], given_up: Event) -> str | None:
        """What is wrong with it, if it does not serve."""
        try:
            there = service.process.running() is not None
            self._started(service)
            ready_s = service.wait_ready(given_up)
        except FlashVectorError as error:
            text = str(error)
            return text if text.startswith(service.name) else f"{service.name}: {text}"
        say(f"{service.name}: {service.urls[0]}, " + ("ran already" if there else f"ready after {ready_s:.1f} s"))
        return None

    def _started(self, service: Service) -> None:
        with service.process.held(LOCK_WAIT_S) as ours:
            if not ours:
                raise StackError(f"{service.name} is being started or stopped by another process")
            if service.process.running() is None:
                running = service.start()
                self.events.add(What.STARTED, service.name, f"{service.name} started as pid {running.identity.pid}")

    def _down(self, service: Service, say: Callable[[str], None]) -> None:
        with service.process.held(LOCK_WAIT_S) as ours:
            if not ours:
                raise StackError(f"{service.name} is being started or stopped by another process")
            if service.process.record() is None:
                return
            started_s = time.monotonic()
            by_itself = service.stop()
        how = "ended" if by_itself else f"killed, as it did not end within {service.grace_s:g} s"
        say(f"{service.name}: {how} after {time.monotonic() - started_s:.1f} s")

    def _status_of(self, service: Service) -> Status:
        running = service.process.running()
        trouble = service.trouble() if running else f"{service.name} does not run"
        return Status(
            name=service.name,
            kind=service.kind,
            url=service.urls[0] if service.urls else None,
            managed=True,
            pid=running.identity.pid if running else None,
            since_s=running.since_s if running else None,
            trouble=trouble,
            profile=profile_file(self.stack, service.name).read() if service.kind is Kind.REPLICA else None,
        )
