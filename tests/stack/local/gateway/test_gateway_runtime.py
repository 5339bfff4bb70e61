"""The runtime socket's client against sockets that answer, hang, break off or are not there."""

import contextlib
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from stack.errors import InputError, UnreachableError
from stack.local.gateway.runtime import RuntimeSocket

Handler = Callable[[socket.socket, bytes], None]


@contextlib.contextmanager
def serving(handle: Handler) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="fv-"))
    path = folder / "admin.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen(64)
        thread = threading.Thread(target=_accept, args=(listener, handle), daemon=True)
        thread.start()
        yield path
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(5)
    shutil.rmtree(folder)


def _accept(listener: socket.socket, handle: Handler) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with connection:
            asked = b""
            while not asked.endswith(b"\n"):
                asked += connection.recv(1000)
            handle(connection, asked.strip())


def echo(connection: socket.socket, asked: bytes) -> None:
    connection.sendall(b"you said " + asked + b"\n\n")


def test_answers_belong_to_their_commands_whoever_asks():
    with serving(echo) as path, ThreadPoolExecutor(8) as pool:
        found = list(pool.map(RuntimeSocket(path).ask, [f"show {n}" for n in range(100)]))
    assert found == [f"you said show {n}" for n in range(100)]


def test_an_answer_in_pieces_is_put_together():
    def slowly(connection: socket.socket, _: bytes) -> None:
        for _ in range(3):
            connection.sendall("é\n".encode())
            time.sleep(0.05)

    with serving(slowly) as path:
        assert RuntimeSocket(path).ask("show x") == "é\né\né"


@pytest.mark.parametrize("command", ["show info; set weight a/b 1", "show info\nshutdown", "a\rb"])
def test_only_one_command_at_a_time(command: str):
    with pytest.raises(InputError, match="one command"):
        RuntimeSocket(Path("/nowhere")).ask(command)


@pytest.mark.parametrize("answer", [b"", b"half an ans"])
def test_an_answer_broken_off_is_none(answer: bytes):
    with (
        serving(lambda connection, _: connection.sendall(answer)) as path,
        pytest.raises(UnreachableError, match=r"admin\.sock: HAProxy broke off its answer to 'show info'"),
    ):
        RuntimeSocket(path).ask("show info")


def test_silence_and_endless_talk_end_at_the_timeout():
    def drip(connection: socket.socket, _: bytes) -> None:
        with contextlib.suppress(OSError):
            for _ in range(40):
                connection.sendall(b"x\n")
                time.sleep(0.05)

    for handle in (lambda connection, _: time.sleep(0.6), drip):
        with serving(handle) as path:
            start_s = time.monotonic()
            with pytest.raises(UnreachableError, match=r"admin\.sock: HAProxy did not answer within 0\.3 s"):
                RuntimeSocket(path, timeout_s=0.3).ask("show info")
            assert time.monotonic() - start_s < 1.5


def test_a_missing_socket_is_named():
    with pytest.raises(UnreachableError, match=r"/nowhere/admin\.sock: HAProxy cannot be reached: No such file"):
        RuntimeSocket(Path("/nowhere/admin.sock")).ask("show info")
