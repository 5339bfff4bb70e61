"""A PostgreSQL server of the tests' own: in a folder of its own, on a socket in it, run by a user who is not root."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

DEBIAN = Path("/usr/lib/postgresql")
USER = "postgres"
READY_S = 60.0


@contextmanager
def postgres_server() -> Iterator[Path]:
    """The folder of its socket; the server ends with the block."""
    with tempfile.TemporaryDirectory(prefix="pg") as name:
        folder, user = Path(name), USER if os.getuid() == 0 else None
        if user is not None:
            os.chown(folder, pwd.getpwnam(user).pw_uid, pwd.getpwnam(user).pw_gid)
        data = folder / "data"
        options = ["--auth=trust", f"--username={USER}", "--encoding=UTF8", "--locale=C", "--no-sync"]
        subprocess.run(
            [program("initdb"), "-D", data, *options], user=user, cwd=folder, check=True, capture_output=True
        )
        command = [program("postgres"), "-D", data, "-k", folder, "-c", "listen_addresses="]
        with (folder / "log").open("w") as log:
            server = subprocess.Popen(command, user=user, cwd=folder, stdout=log, stderr=log)
        try:
            until_s = time.monotonic() + READY_S
            while not ready(folder):
                assert server.poll() is None and time.monotonic() < until_s, (folder / "log").read_text()
                time.sleep(0.1)
            yield folder
        finally:
            server.send_signal(signal.SIGQUIT)
            server.wait(30)


def ready(folder: Path) -> bool:
    command = [program("pg_isready"), "-h", folder, "-U", USER, "-q"]
    return subprocess.run(command, check=False).returncode == 0


def new_database(folder: Path, name: str) -> str:
    """The URL of an empty database."""
    subprocess.run([program("createdb"), "-h", folder, "-U", USER, name], check=True)
    return f"postgresql+psycopg://{USER}@/{name}?host={folder}"


def program(name: str) -> str:
    """A program of the newest version that is installed."""
    versions = sorted(DEBIAN.glob(f"*/bin/{name}"), key=lambda path: float(path.parts[-3]))
    found = str(versions[-1]) if versions else shutil.which(name)
    assert found, f"{name} is not installed; Debian has it in the package postgresql"
    return found
