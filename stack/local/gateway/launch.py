"""How HAProxy is started, and whether it would accept its files."""

import subprocess

from stack.errors import InputError
from stack.local.configuration import LocalStack
from stack.local.gateway import layout

CHECK_TIMEOUT_S = 20.0


def command(configuration: LocalStack) -> tuple[str, ...]:
    """Program and arguments that run HAProxy in the foreground, once the files are written.

    The process is HAProxy's master: it keeps its pid over reloads, passes the listening sockets on to new workers, and
    ends with its workers on SIGTERM (at once) or SIGUSR1 (when their requests are done).
    """
    return (*_base(configuration), "-W", "-S", f"unix@{layout.MASTER_SOCKET},mode,600")


def check(configuration: LocalStack) -> None:
    """Let HAProxy read the files without running them.

    Raises:
        InputError: it is not installed, or does not accept them; the text is its first complaint.
    """
    arguments = (*_base(configuration), "-c")
    try:
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=CHECK_TIMEOUT_S, check=False)
    except FileNotFoundError as error:
        raise InputError(f"{configuration.gateway.command}: no such program; install HAProxy 2.6 or newer") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InputError(f"{configuration.gateway.command}: cannot check its configuration: {error}") from error
    if done.returncode != 0:
        said = [line for line in (done.stderr + done.stdout).splitlines() if "[ALERT]" in line]
        why = said[0].split(" : config : ", 1)[-1].strip() if said else f"exit status {done.returncode}"
        raise InputError(f"{layout.folder_of(configuration)}: HAProxy does not accept it: {why}")


def _base(configuration: LocalStack) -> tuple[str, ...]:
    return (configuration.gateway.command, "-C", str(layout.folder_of(configuration)), "-f", layout.CONFIG)
