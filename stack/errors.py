"""What can go wrong between us and a serving stack.

FlashVectorError
├── InputError            a file, argument or name the caller gave is unusable: the caller must correct it
└── StackError            the stack did not do what was asked
    ├── UnreachableError  nothing answered: the operator must look at the process or the network
    ├── UnknownSettingError   no such setting, or no such target for it: the caller must correct it
    ├── RefusedError      the stack refused the value; `holds` says what it has now
    └── ReadBackError     the write was sent, but what was read back differs; `holds` says what it has now
"""

from stack.redaction import clean


class FlashVectorError(Exception):
    """Root of every error raised on purpose; its text is one clear line for the person who must act.

    Much of it is what other programs said, so it is made plain and free of secrets here, wherever it goes from here.
    """

    def __init__(self, message: object = "") -> None:
        super().__init__(clean(str(message)))


class InputError(FlashVectorError):
    """Unusable input. The text names the file or argument and the place in it."""


class StackError(FlashVectorError):
    """The stack did not do what was asked."""


class UnreachableError(StackError):
    """Nothing answered, so what the stack holds is unknown."""


class UnknownSettingError(StackError):
    """No setting of that name, or the setting does not exist on that target."""


class RefusedError(StackError):
    """The stack refused a value and still holds another one.

    Attributes:
        holds: the value in force after the refusal.
    """

    def __init__(self, message: str, holds: float | str | None) -> None:
        super().__init__(f"{message}; the stack now holds {holds!r}")
        self.holds = holds


class ReadBackError(RefusedError):
    """A write was sent and something else was read back."""
