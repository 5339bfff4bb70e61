"""HAProxy's master process and its workers: after a reload former workers end the requests they have."""

import time

from stack.errors import UnreachableError
from stack.local.configuration import LocalStack
from stack.local.gateway import answers, layout
from stack.local.gateway.runtime import RuntimeSocket

REEXEC_S = 10.0
"""During a reload the master executes itself anew, twice; it does not answer in between."""
_LOOK_S = 0.1
_FORMER = "# old workers"


def master_socket(configuration: LocalStack) -> RuntimeSocket:
    """Where the master answers."""
    return RuntimeSocket(layout.folder_of(configuration) / layout.MASTER_SOCKET)


def ask_master(configuration: LocalStack, command: str, wait_s: float = REEXEC_S) -> str:
    """The master's answer, asked again for up to `wait_s` seconds, for it may be in the middle of a reload.

    Raises:
        UnreachableError: it did not answer in that time.
    """
    end_s = time.monotonic() + wait_s
    while True:
        try:
            return master_socket(configuration).ask(command)
        except UnreachableError:
            if time.monotonic() >= end_s:
                raise
        time.sleep(_LOOK_S)


def former_workers(configuration: LocalStack) -> tuple[int, ...]:
    """Pids of workers that a reload has replaced and that still have requests.

    Raises:
        UnreachableError: the master does not answer.
    """
    lines = ask_master(configuration, "show proc").splitlines()
    if _FORMER not in lines:
        return ()
    rows = [line.split() for line in lines[lines.index(_FORMER) + 1 :]]
    return tuple(int(row[0]) for row in rows if len(row) > 1 and row[0].isdecimal() and row[1] == "worker")


def sessions_of_former_workers(configuration: LocalStack, replica: str) -> int:
    """Requests that former workers have at a replica.

    Raises:
        UnreachableError: the master does not answer.
    """
    total = 0
    for pid in former_workers(configuration):
        answer = ask_master(configuration, f"@!{pid} {answers.STATISTICS}")
        try:
            backends = answers.servers_in(answer)
        except UnreachableError:
            continue  # it has ended since
        held = [servers[replica] for servers in backends.values() if replica in servers]
        total += sum(server.sessions + server.queued for server in held)
    return total
