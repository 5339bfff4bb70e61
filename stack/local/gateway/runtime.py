"""HAProxy's runtime socket: one command, one connection, one answer. So answers cannot be mixed up."""

import socket
import time
from pathlib import Path

from stack.errors import InputError, UnreachableError

TIMEOUT_S = 5.0
MAX_BYTES = 16 * 1024 * 1024


class RuntimeSocket:
    """Asks HAProxy. Safe to use from several threads: nothing is kept between two commands."""

    def __init__(self, path: Path, timeout_s: float = TIMEOUT_S) -> None:
        self._path, self._timeout_s = path, timeout_s

    def ask(self, command: str) -> str:
        """The answer to a command, without the empty lines at its end; empty when all went well with a change.

        Raises:
            InputError: the text is more than one command.
            UnreachableError: nothing answered within the timeout, or not to the end.
        """
        if any(character in command for character in ";\n\r"):
            raise InputError(f"one command of HAProxy's runtime socket expected, found {command!r}")
        answer = self._exchange(command)
        if not answer.endswith(b"\n"):
            raise UnreachableError(f"{self._path}: HAProxy broke off its answer to {command!r}")
        return answer.decode("utf-8", errors="replace").rstrip("\n")

    def tell(self, command: str) -> None:
        """Send a command whose answer may be missing, as that of `reload` is.

        Raises:
            InputError, UnreachableError: as for `ask`, but for the answer.
        """
        self._exchange(command)

    def _exchange(self, command: str) -> bytes:
        end_s = time.monotonic() + self._timeout_s
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
                connection.settimeout(self._timeout_s)
                connection.connect(str(self._path))
                connection.sendall(f"{command}\n".encode())
                connection.shutdown(socket.SHUT_WR)  # the master's socket answers, but closes only then
                return self._received(connection, end_s)
        except TimeoutError as error:
            raise UnreachableError(f"{self._path}: HAProxy did not answer within {self._timeout_s:g} s") from error
        except OSError as error:
            raise UnreachableError(f"{self._path}: HAProxy cannot be reached: {error.strerror or error}") from error

    def _received(self, connection: socket.socket, end_s: float) -> bytes:
        answer = bytearray()
        while True:
            left_s = end_s - time.monotonic()
            if left_s <= 0:
                raise TimeoutError
            connection.settimeout(left_s)
            part = connection.recv(65_536)
            if not part:
                return bytes(answer)
            answer += part
            if len(answer) > MAX_BYTES:
                raise UnreachableError(f"{self._path}: an answer of more than {MAX_BYTES} bytes; is this HAProxy?")
