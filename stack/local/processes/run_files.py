"""Files of the run folder: written whole or not at all, and locks that end with their holder."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

POLL_S = 0.05


def write_whole(path: Path, text: str) -> None:
    """Put `text` into the file at `path` such that a reader sees the old or the new text, and never a part."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    unfinished.write_text(text, encoding="utf-8")
    unfinished.replace(path)


@contextmanager
def locked(path: Path, wait_s: float) -> Iterator[bool]:
    """Hold the lock `path` for the block.

    Args:
        path: an empty file; the kernel lets go of the lock when its holder ends, however that happens.
        wait_s: how long to wait for another holder.

    Yields:
        whether we hold it.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with path.open("a", encoding="utf-8") as file:
        yield _taken(file.fileno(), time.monotonic() + wait_s)


def _taken(file: int, until_s: float) -> bool:
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until_s:
                return False
            time.sleep(POLL_S)
        else:
            return True
