"""What HAProxy's runtime socket answers, as values."""

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from stack.errors import UnreachableError

INFO, SERVERS, STATISTICS = "show info", "show servers state", "show stat"
_MAINTENANCE_OR_DRAIN = 0x01 | 0x02 | 0x08 | 0x10
"""Bits of srv_admin_state: maintenance and drain, each set by a command or taken over from the tracked server.

Source: HAProxy 2.6 management guide, "show servers state".
"""


@dataclass(frozen=True)
class Boot:
    """One worker process: another one means that HAProxy was reloaded or restarted.

    Attributes:
        started_s: seconds since the epoch, whole.
    """

    pid: int
    started_s: int


@dataclass(frozen=True)
class Server:
    """One server of one backend.

    Attributes:
        status: as HAProxy says it, such as UP, DOWN, DRAIN, "MAINT (via replicas/r1)".
        limit: most concurrent requests; 0 is no limit.
        weight: 0 to 256.
        sessions: requests at the server now.
        queued: requests that wait for this server and no other.
    """

    status: str
    limit: int
    weight: int
    sessions: int
    queued: int


def boot_in(answer: str) -> Boot:
    """From `show info`.

    Raises:
        UnreachableError: it is not HAProxy's answer.
    """
    found = dict(line.split(": ", 1) for line in answer.splitlines() if ": " in line)
    try:
        return Boot(int(found["Pid"]), int(found["Start_time_sec"]))
    except (KeyError, ValueError) as error:
        raise _unexpected(INFO, answer) from error


def entries_in(answer: str) -> dict[str, str]:
    """From `show map`: {key: value}, without the entries' addresses."""
    parts = [line.split(" ", 2) for line in answer.splitlines() if line.startswith("0x")]
    return {part[1]: part[2] for part in parts if len(part) == 3}


def servers_in(answer: str) -> dict[str, dict[str, Server]]:
    """From `show stat`: {backend: {server: ...}}.

    Raises:
        UnreachableError: it is not HAProxy's answer.
    """
    found: dict[str, dict[str, Server]] = {}
    for row in _statistics(answer):
        if row["svname"] in ("FRONTEND", "BACKEND"):
            continue
        numbers = (int(row[column] or 0) for column in ("slim", "uweight", "scur", "qcur"))
        found.setdefault(row["pxname"], {})[row["svname"]] = Server(row["status"], *numbers)
    return found


def queued_in(answer: str) -> int:
    """From `show stat`: requests that wait at the gateway for whichever replica is free first."""
    return sum(int(row["qcur"] or 0) for row in _statistics(answer) if row["svname"] == "BACKEND")


def out_of_rotation(answer: str, backend: str) -> frozenset[str]:
    """From `show servers state`: the backend's servers that an administrator keeps new requests from.

    Raises:
        UnreachableError: it is not HAProxy's answer.
    """
    lines = [line for line in answer.splitlines() if line and line != "1"]
    if not lines or not lines[0].startswith("# be_id"):
        raise _unexpected(SERVERS, answer)
    columns = lines[0].removeprefix("# ").split()
    rows: Iterable[Mapping[str, str]] = (dict(zip(columns, line.split(), strict=False)) for line in lines[1:])
    return frozenset(
        row["srv_name"]
        for row in rows
        if row["be_name"] == backend and int(row["srv_admin_state"]) & _MAINTENANCE_OR_DRAIN
    )


def _statistics(answer: str) -> list[dict[str, str]]:
    if not answer.startswith("# pxname,"):
        raise _unexpected(STATISTICS, answer)
    return list(csv.DictReader(answer.removeprefix("# ").splitlines()))


def _unexpected(command: str, answer: str) -> UnreachableError:
    first = answer.splitlines()[0] if answer else "nothing"
    return UnreachableError(f"the gateway's answer to {command!r} is not HAProxy's: {first[:80]!r}")
