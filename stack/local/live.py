"""A running local stack as a reader, a control and a clock, for as long as somebody looks after it."""

from contextlib import ExitStack
from typing import Self

from stack.clock import Clock, WallClock
from stack.errors import InputError, RefusedError, UnknownSettingError
from stack.local.admission import Promise, keep
from stack.local.configuration import LocalStack
from stack.local.control import LocalControl
from stack.local.processes.run_files import locked
from stack.local.reading.reader import LocalReader
from stack.local.reading.values import ValuesInForce
from stack.setting import Value

SESSION_LOCK = "session.lock"


class LiveStack:
    """The stack between `with` and its end. One holder of a control at a time; any number may look.

    Args:
        configuration: the stack.
        writes: whether settings can be changed; without it nothing here holds a way to.
        promise: what the gateway's deadline shedding refers to; None leaves what it knows.

    Attributes:
        reader, control, clock: what a session works with.
    """

    def __init__(self, configuration: LocalStack, *, writes: bool, promise: Promise | None = None) -> None:
        self._configuration = configuration if writes else configuration.for_reading()
        self._writes, self._promise = writes, promise
        self._ends = ExitStack()

    def __enter__(self) -> Self:
        """Begin to read the stack.

        Raises:
            InputError: another session looks after it.
        """
        with ExitStack() as ends:
            if self._writes:
                self._claim(ends)
            values = ValuesInForce(self._configuration)
            ends.callback(values.close)
            self.clock: Clock = WallClock()
            self.reader = LocalReader(self._configuration, self.clock, values.now)
            ends.callback(self.reader.close)
            self.control = self._control(ends) if self._writes else OnlookersControl(values)
            self._ends = ends.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        """End the reading; the stack goes on as it is."""
        self._ends.close()

    def _claim(self, ends: ExitStack) -> None:
        name, path = self._configuration.name, self._configuration.run_folder / SESSION_LOCK
        if not ends.enter_context(locked(path, wait_s=0.0)):
            raise InputError(f"another FlashVector looks after {name} (it holds {path}); end it first")

    def _control(self, ends: ExitStack) -> LocalControl:
        control = LocalControl.of(self._configuration)
        ends.callback(control.close)
        if self._promise is not None:
            keep(self._promise, self._configuration.run_folder)
            control.align(self._promise)
        return control


class OnlookersControl:
    """What a process has that must not write: it reads values, and refuses every write.

    Args:
        values: what is in force.
    """

    def __init__(self, values: ValuesInForce) -> None:
        self._values = values

    def read(self, setting: str, target: str) -> Value:
        """The value in force; see `stack.control.StackControl.read`."""
        held = self._values.now().settings.get(setting, {})
        if target not in held:
            raise UnknownSettingError(f"{setting} of {target} is not known")
        return held[target]

    def write(self, setting: str, target: str, value: Value) -> Value:
        """Refused.

        Raises:
            RefusedError: always.
        """
        held = self.read(setting, target)
        raise RefusedError(f"{setting} of {target} was not set to {value!r}: this process only looks", held)
