"""A process that outlives us: in a session of its own, with a log, and known again after we were restarted."""

import json
import os
import shlex
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from stack.errors import InputError
from stack.local.processes.kernel_process import Identity, identity_of, identity_of_existing, members, send
from stack.local.processes.run_files import locked, write_whole

POLL_S = 0.05
KILLED_WITHIN_S = 10.0
LOG_KEPT_BYTES = 64 * 1024 * 1024
LAST_LINES = 12


@dataclass(frozen=True)
class Running:
    """A started process.

    Attributes:
        identity: who it is.
        since_s: when it was started.
        log_from: where its lines begin in the log, bytes.
    """

    identity: Identity
    since_s: float
    log_from: int


class ManagedProcess:
    """One named process and all that it starts, as long as they stay in its session.

    Args:
        name: what it is called; names its files.
        folder: where NAME.log, NAME.pid and NAME.lock are.
    """

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.log = folder / f"{name}.log"
        self._pid_file = folder / f"{name}.pid"
        self._lock = folder / f"{name}.lock"
        self._exits: dict[int, int] = {}

    @contextmanager
    def held(self, wait_s: float = 0.0) -> Iterator[bool]:
        """Keep others from starting and stopping it during the block; yields whether we may. Ends with its holder."""
        with locked(self._lock, wait_s) as ours:
            yield ours

    def start(self, command: Sequence[str], environment: Mapping[str, str]) -> Running:
        """Start it, after ending what an earlier one left behind; does nothing when it runs.

        Args:
            command: program and arguments; the program is a path.
            environment: all variables it gets.

        Raises:
            InputError: the program cannot be started.
        """
        if (present := self.running()) is not None:
            return present
        self.end_leftovers()
        log_from = self._open_log(command)
        return self._note(Running(identity_of_existing(self._spawn(command, environment)), time.time(), log_from))

    def enlist(self) -> None:
        """Note the calling process under this name, so that others know it and can stop it."""
        if self.running() is None:
            self._note(Running(identity_of_existing(os.getpid()), time.time(), 0))

    def running(self) -> Running | None:
        """The process if it lives, whoever of us started it."""
        record = self.record()
        if record is None:
            return None
        self._collect(record.identity.pid)
        return record if identity_of(record.identity.pid) == record.identity else None

    def record(self) -> Running | None:
        """What was started last, alive or not; None when it was never started, or stopped on purpose."""
        try:
            fields: dict[str, Any] = json.loads(self._pid_file.read_text(encoding="utf-8"))
            return Running(Identity(**fields["identity"]), float(fields["since_s"]), int(fields["log_from"]))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(f"{self._pid_file}: expected what was started as {self.name}, found {error!r}") from error

    def stop(self, grace_s: float, first: signal.Signals = signal.SIGTERM) -> bool:
        """End it and all of its session, and forget it; whether it went by itself.

        Args:
            grace_s: how long it may take after the first signal; then SIGKILL.
            first: the signal to its leader, and to what is left once the leader is gone.
        """
        record = self.record()
        if record is None:
            return True
        gone = self._ended_by(record, first, grace_s)
        if not gone:
            self._kill(record)
        self._pid_file.unlink(missing_ok=True)
        return gone

    def end_leftovers(self) -> None:
        """Kill what is left of its session; children of a leader that was killed hold its memory and ports."""
        record = self.record()
        if record is not None:
            self._kill(record)

    def last_lines(self, log_from: int | None = None) -> str:
        """The last lines it logged since it was started, with the log's name, for the end of a message."""
        if log_from is None:
            record = self.record()
            log_from = record.log_from if record else 0
        lines = _tail(self.log, log_from)
        said = "".join(f"\n  {line}" for line in lines) if lines else " nothing"
        return f"; {self.log} ends with:{said}"

    def ending(self) -> str:
        """How it ended, as far as is known: only its parent is told."""
        record = self.record()
        if record is None:
            return "ended"
        self._collect(record.identity.pid)
        status = self._exits.get(record.identity.pid)
        if status is None:
            return "ended"
        return f"ended with code {status}" if status >= 0 else f"was ended by {signal.Signals(-status).name}"

    def _note(self, running: Running) -> Running:
        write_whole(self._pid_file, json.dumps(asdict(running), indent=2))
        return running

    def _open_log(self, command: Sequence[str]) -> int:
        self.log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if self.log.exists() and self.log.stat().st_size > LOG_KEPT_BYTES:
            self.log.replace(self.log.with_suffix(".log.old"))
        with self.log.open("a", encoding="utf-8") as file:
            file.write(f"--- {time.strftime('%Y-%m-%d %H:%M:%S')} {shlex.join(command)!r}\n")
            return file.tell()

    def _spawn(self, command: Sequence[str], environment: Mapping[str, str]) -> int:
        actions = (
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(self.log), os.O_WRONLY | os.O_APPEND, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
            *((os.POSIX_SPAWN_CLOSE, handle) for handle in _inherited()),
        )
        # Python ignores two signals and a child would inherit that.
        ways: dict[str, Any] = {"setsid": True, "setsigdef": (signal.SIGPIPE, signal.SIGXFSZ), "setsigmask": ()}
        try:
            return os.posix_spawn(command[0], list(command), environment, file_actions=actions, **ways)
        except OSError as error:
            raise InputError(f"{self.name}: {command[0]} cannot be started: {error.strerror}") from error

    def _session(self, record: Running) -> tuple[Identity, ...]:
        """What lives of it: its leader and the members of the session that the leader began.

        The kernel gives nobody a pid that still names a session, so with a stranger as leader none of them is ours.
        """
        ours = record.identity
        present = identity_of(ours.pid)
        if present not in (None, ours):
            return ()
        others = [one for one in members(ours.pid) if one.boot_id == ours.boot_id and one != ours]
        return (*((ours,) if present else ()), *others)

    def _ended_by(self, record: Running, number: signal.Signals, within_s: float) -> bool:
        """Whether the session ended after a signal to its leader, which tells its children as it sees fit."""
        until_s, told = time.monotonic() + within_s, set[Identity]()
        while session := self._session(record):
            for process in [one for one in session if one == record.identity] or session:
                if process not in told:
                    send(process, number)
                    told.add(process)
            if time.monotonic() >= until_s:
                return False
            time.sleep(POLL_S)
            self._collect(record.identity.pid)
        return True

    def _kill(self, record: Running) -> None:
        until_s = time.monotonic() + KILLED_WITHIN_S
        while time.monotonic() < until_s and (left := self._session(record)):
            for process in left:
                send(process, signal.SIGKILL)
            time.sleep(POLL_S)
            self._collect(record.identity.pid)

    def _collect(self, pid: int) -> None:
        """Take the exit status of a child of ours, so that it does not stay as a zombie."""
        try:
            ended, status = os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            return
        if ended:
            self._exits[pid] = os.waitstatus_to_exitcode(status)


def _inherited() -> list[int]:
    """Open files that our own starter left to us, such as a lock: what outlives us must not hold them for ever."""
    return [handle for handle in map(int, os.listdir("/proc/self/fd")) if handle > 2 and _is_inheritable(handle)]  # noqa: PTH208


def _is_inheritable(handle: int) -> bool:
    try:
        return os.get_inheritable(handle)
    except OSError:  # the listing's own handle
        return False


def _tail(log: Path, start: int) -> list[str]:
    try:
        with log.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(start, size - 16_384))
            text = file.read().decode("utf-8", errors="replace")
    except OSError:
        return []
    return [line.rstrip() for line in text.splitlines() if line.strip()][-LAST_LINES:]
