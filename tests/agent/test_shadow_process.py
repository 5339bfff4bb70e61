"""The process of shadow mode holds nothing that could write; that of another mode does, so the test would see it."""

import json
import socket
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "stack" / "local"))
from live_pages import live_pages, table_of

from stack.local.gateway import layout

LOOK = """
import gc, json, sys
from pathlib import Path

reached = []
sys.addaudithook(lambda event, what: event == "socket.connect" and reached.append(what[1]))

import httpx

from agent.settings import Settings
from agent.wiring import live_session
from stack.catalogue import SETTINGS
from stack.errors import StackError

refused = []
try:
    with live_session(Settings.load(Path(sys.argv[1]))) as session:
        for _ in range(2):
            session.cycle()
        for setting in SETTINGS:
            try:
                session._desk.executor._actuator._control.write(setting.name, "r1", setting.default)
            except StackError:
                refused.append(setting.name)
        writers = sorted(type(one).__name__ for one in gc.get_objects() if type(one).__name__ in sys.argv[2:])
        there = gc.get_objects()
        writing = any(one._writes for one in there if type(one).__name__ == "EngineClient")
        secrets = {one.get_secret_value() for one in there if type(one).__name__ == "SecretStr"} - {""}
        shown = {one.headers.get("authorization") for one in there if type(one) is httpx.Client} - {None}
        opens = sorted({*secrets, *(one.removeprefix("Bearer ") for one in shown)})
except StackError as error:
    writers, writing, opens = [str(error)], True, []
local = [str(one) for one in reached if not isinstance(one, tuple)]
found = {"refused": len(refused) == len(SETTINGS), "writers": writers, "writing": writing, "opens": opens}
print(json.dumps({**found, "local": local}))
"""
FOR_ALL, FOR_READING = "opens-every-route", "opens-what-reads"
WRITERS = ("LocalControl", "GatewayControl", "EngineControl", "RuntimeSocket", "Launches")


@pytest.fixture
def stack():
    """Engines and gateway that can be read, and a runtime socket of the gateway that tells whether it was reached."""
    with tempfile.TemporaryDirectory(prefix="fv-") as folder, live_pages(Path(folder)) as pages:
        place = layout.folder_of(pages.configuration)
        place.mkdir(parents=True)
        admin, reached = socket.socket(socket.AF_UNIX), []
        admin.bind(str(place / layout.ADMIN_SOCKET))
        admin.listen()
        listener = threading.Thread(target=_hang_up, args=(admin, reached))
        listener.start()
        yield Path(folder), pages, reached
        admin.shutdown(socket.SHUT_RDWR)
        listener.join()
        admin.close()


def _hang_up(admin: socket.socket, reached: list[str]) -> None:
    """Note every connection and end it at once."""
    with suppress(OSError):
        while True:
            admin.accept()[0].close()
            reached.append("reached")


def looked(stack, mode: str) -> dict:
    folder, pages, _ = stack
    config = folder / "stack.toml"
    tokens = f'engine_token = "{FOR_ALL}"\nengine_read_token = "{FOR_READING}"'
    table = table_of(folder, pages.r1.url, pages.r2.url, pages.gateway.url, tokens)
    config.write_text(f"{mode}\nwindow_s = 5\ncycle_s = 1\n{table}")
    command = (sys.executable, "-c", LOOK, str(config), *WRITERS)
    result = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout.splitlines()[-1])


def test_in_shadow_no_writer_is_held_and_the_runtime_socket_is_never_reached(stack):
    nothing = {"refused": True, "writers": [], "writing": False, "local": []}
    assert looked(stack, "") == nothing | {"opens": [FOR_READING]}
    assert stack[2] == []


def test_in_approve_mode_it_is(stack):
    found = looked(stack, 'mode = "approve"')
    assert any(layout.ADMIN_SOCKET in place for place in found["local"])
    assert FOR_ALL in found["opens"]
    assert stack[2]
