"""Ctrl-C between two cycles instead of in the middle of one: a write or a transaction is never cut in half."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

INTERRUPTED = 130
"""Exit code, as shells give it."""


@dataclass
class Interruption:
    """Whether the person asked to stop."""

    asked: bool = False


@contextmanager
def interruption() -> Iterator[Interruption]:
    """Ctrl-C is only noted inside; a second one interrupts at once."""
    noted = Interruption()

    def note(_signal: int, _frame: FrameType | None) -> None:
        if noted.asked:
            raise KeyboardInterrupt
        noted.asked = True

    before = signal.signal(signal.SIGINT, note)
    try:
        yield noted
    finally:
        signal.signal(signal.SIGINT, before)
