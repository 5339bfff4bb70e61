"""Processes as the Linux kernel knows them: who a pid is, who belongs to a session, who listens on a port."""

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
_STATE, _SESSION, _START = 0, 3, 19
"""Places in /proc/PID/stat after the command name, see proc(5)."""
_ENDED = {"Z", "X", "x"}
_LISTENS = "0A"


@dataclass(frozen=True)
class Identity:
    """One process for good: pids are used again, the kernel's start time of a pid within one boot is not.

    Attributes:
        pid: the process.
        start_ticks: clock ticks from boot to its start.
        boot_id: which boot.
    """

    pid: int
    start_ticks: int
    boot_id: str


def identity_of(pid: int) -> Identity | None:
    """The process that has this pid now; None when there is none, or it has ended and waits to be collected."""
    fields = _stat(pid)
    if fields is None or fields[_STATE] in _ENDED:
        return None
    return Identity(pid, int(fields[_START]), _boot_id())


def identity_of_existing(pid: int) -> Identity:
    """Ourselves, or a child whose exit status nobody has collected: the kernel keeps its entry even if it has ended."""
    fields = _stat(pid)
    if fields is None:
        raise ProcessLookupError(pid)
    return Identity(pid, int(fields[_START]), _boot_id())


def members(session: int) -> tuple[Identity, ...]:
    """The living processes of a session: its leader and all descendants that did not leave it."""
    found = []
    for pid in _pids():
        fields = _stat(pid)
        if fields is not None and int(fields[_SESSION]) == session and fields[_STATE] not in _ENDED:
            found.append(Identity(pid, int(fields[_START]), _boot_id()))
    return tuple(found)


def send(process: Identity, number: signal.Signals) -> bool:
    """Signal exactly this process, never one that got its pid; whether it was there."""
    try:
        handle = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return False
    try:
        if identity_of(process.pid) != process:
            return False
        signal.pidfd_send_signal(handle, number)
    except ProcessLookupError:
        return False
    finally:
        os.close(handle)
    return True


def listener_on(port: int) -> str | None:
    """Who listens on a TCP port, as "pid 12 (name)" or "another user's process"; None when nobody does."""
    sockets = set(_listening_sockets(port))
    if not sockets:
        return None
    for pid in _pids():
        if sockets & set(_sockets_of(pid)):
            return f"pid {pid} ({_name(pid)})"
    return "another user's process"


def _pids() -> Iterator[int]:
    return (int(folder.name) for folder in PROC.iterdir() if folder.name.isdecimal())


def _stat(pid: int) -> list[str] | None:
    """The fields of /proc/PID/stat after the command name, which may itself hold spaces and brackets."""
    try:
        return (PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None


def _boot_id() -> str:
    return (PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def _name(pid: int) -> str:
    try:
        return (PROC / str(pid) / "comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return "ended"


def _listening_sockets(port: int) -> Iterator[str]:
    for table in (PROC / "net/tcp", PROC / "net/tcp6"):
        lines = table.read_text(encoding="ascii").splitlines()[1:] if table.exists() else []
        for fields in (line.split() for line in lines):
            if fields[3] == _LISTENS and int(fields[1].rpartition(":")[2], 16) == port:
                yield f"socket:[{fields[9]}]"


def _sockets_of(pid: int) -> Iterator[str]:
    try:
        for handle in (PROC / str(pid) / "fd").iterdir():
            yield str(handle.readlink())
    except OSError:  # it ended, or is another user's
        return
