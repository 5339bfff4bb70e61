"""Writing to a stack, and reading back what it holds.

Only harness.execution and the composition root may import this module.
"""

from typing import Protocol

from stack.setting import Value


class StackControl(Protocol):
    """The write side of a stack. Writes are set-to-value, so a repeated write is the same write."""

    def read(self, setting: str, target: str) -> Value:
        """The value in force now, read from the stack itself, never from memory.

        Raises:
            UnknownSettingError: no such setting, or not on that target.
            UnreachableError: nothing answered.
        """
        ...

    def write(self, setting: str, target: str, value: Value) -> Value:
        """Set the value and return what was read back.

        Raises:
            UnknownSettingError: no such setting, or not on that target.
            UnreachableError: nothing answered, so whether it was set is unknown until a read answers.
            RefusedError: the stack refused and holds another value.
            ReadBackError: it was sent, but another value was read back.
        """
        ...
