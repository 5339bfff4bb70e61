"""Reading a stack. A reader has no way to change anything."""

from typing import Protocol

from stack.snapshot import Snapshot


class StackReader(Protocol):
    """The read side of a stack."""

    def snapshot(self, window_s: float) -> Snapshot:
        """Facts over the last `window_s` seconds. What could not be read is listed in `missing`, never guessed.

        Raises:
            UnreachableError: no source answered at all.
        """
        ...
