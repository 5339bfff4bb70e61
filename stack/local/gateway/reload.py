"""A new configuration for a running HAProxy without losing a request or a setting."""

import time

from stack.errors import InputError, UnreachableError
from stack.local.configuration import LocalStack
from stack.local.gateway import answers, layout
from stack.local.gateway.control import GatewayControl
from stack.local.gateway.files import write_files
from stack.local.gateway.launch import check
from stack.local.gateway.runtime import RuntimeSocket
from stack.local.gateway.state import GatewayState
from stack.local.gateway.values import Start
from stack.local.gateway.workers import ask_master, master_socket

WAIT_S = 20.0
_LOOK_S = 0.1


def reload(configuration: LocalStack, wait_s: float = WAIT_S) -> GatewayState:
    """Have a new worker take over with the settings in force, and return what it holds.

    The former worker ends its requests. The new one counts from zero: until they have ended, caps and admission do not
    know of them, and deadline shedding measures the completion rate anew. Nobody may write settings meanwhile.

    Raises:
        UnreachableError: HAProxy did not answer, or no new worker within `wait_s`.
        InputError: the files cannot be written or are not accepted; the running worker is left alone.
        StackError: as for `GatewayControl.restore`.
    """
    control = GatewayControl(configuration)
    before = control.state()
    servers = RuntimeSocket(layout.folder_of(configuration) / layout.ADMIN_SOCKET).ask(answers.SERVERS)
    folder = write_files(configuration, Start(before.values, before.numbers))
    try:
        (folder / layout.SERVER_STATE).write_text(f"{servers}\n", encoding="utf-8")
    except OSError as error:
        raise InputError(f"{folder}: the servers' state cannot be written: {error.strerror}") from error
    check(configuration)
    ask_master(configuration, "show proc")
    master_socket(configuration).tell("reload")
    _wait_for_another(control, before, wait_s)
    control.restore(before.values, before.numbers)
    return control.state()


def _wait_for_another(control: GatewayControl, before: GatewayState, wait_s: float) -> None:
    end_s = time.monotonic() + wait_s
    while time.monotonic() < end_s:
        time.sleep(_LOOK_S)
        try:
            if control.state().boot != before.boot:
                return
        except UnreachableError:
            continue  # between two workers
    raise UnreachableError(f"HAProxy was told to reload, but worker {before.boot.pid} still answers after {wait_s:g} s")
