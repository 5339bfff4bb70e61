"""What happened to the stack's processes, one JSON object per line: time_s, what, target, text."""

import json
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

FILE = "events.jsonl"


class What(StrEnum):
    """Kinds of events."""

    STARTED = "started"
    READY = "ready"
    LOST = "lost"
    """It ended, or was ended because it no longer worked."""
    NOT_READY = "not_ready"
    """It was started and does not serve."""
    RESTORED = "restored"
    NOT_RESTORED = "not_restored"
    RESTARTED = "restarted"
    """On purpose."""
    TROUBLE = "trouble"
    """The watcher could not do what it wanted."""


@dataclass(frozen=True)
class Event:
    """One thing that happened.

    Attributes:
        time_s: seconds since the Unix epoch.
        target: the service.
        text: one line for a person.
    """

    time_s: float
    what: What
    target: str
    text: str


Tell = Callable[[What, str, str], None]
"""Takes what happened, to which service, and one line for a person."""


class EventLog:
    """The events of one run folder; several processes may add to it."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE

    def add(self, what: What, target: str, text: str) -> None:
        """Note an event, as one line in one write."""
        line = json.dumps(asdict(Event(round(time.time(), 3), what, target, text)), ensure_ascii=False)
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(handle, f"{line}\n".encode())
        finally:
            os.close(handle)

    def read(self) -> tuple[Event, ...]:
        """All of them, oldest first."""
        if not self._path.exists():
            return ()
        documents = (json.loads(line) for line in self._path.read_text(encoding="utf-8").splitlines())
        return tuple(Event(one["time_s"], What(one["what"]), one["target"], one["text"]) for one in documents)
