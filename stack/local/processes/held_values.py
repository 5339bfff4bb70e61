"""The values last written to the stack's settings. Engines and gateway forget them at a restart; this file does not."""

import json
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from stack.catalogue import setting_named
from stack.errors import InputError, StackError
from stack.layer import Layer
from stack.local.processes.run_files import locked, write_whole
from stack.setting import SettingClass, Value

FILE = "held.json"
LOCK_WAIT_S = 30.0

Write = Callable[[str, str, Value], object]
"""Sets setting, target, value; raises StackError when the stack does not take it."""


@dataclass(frozen=True)
class HeldValue:
    """One value.

    Attributes:
        setting: its name in the catalogue.
        target: a replica, or the pool.
        value: what was written last.
        time_s: when, seconds since the Unix epoch.
    """

    setting: str
    target: str
    value: Value
    time_s: float


class HeldValues:
    """The held values of one run folder.

    Args:
        folder: the run folder.
    """

    def __init__(self, folder: Path) -> None:
        self._path, self._lock = folder / FILE, folder / f"{FILE}.lock"

    def read(self) -> tuple[HeldValue, ...]:
        """All of them, oldest first.

        Raises:
            InputError: the file is damaged.
        """
        try:
            documents = json.loads(self._path.read_text(encoding="utf-8"))
            return tuple(HeldValue(**one) for one in documents)
        except FileNotFoundError:
            return ()
        except (ValueError, TypeError) as error:
            raise InputError(f"{self._path}: not a list of held values: {error}; remove it to forget them") from error

    def note(self, setting: str, target: str, value: Value) -> None:
        """Put a written value in the place of the one before."""
        with self.writing():
            self.put(setting, target, value)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Keep other writers out while a value is written to the stack and put here.

        Raises:
            StackError: another writer does not end.
        """
        with locked(self._lock, LOCK_WAIT_S) as ours:
            if not ours:
                raise StackError(f"another process has been writing to the stack for {LOCK_WAIT_S:g} s: {self._lock}")
            yield

    def put(self, setting: str, target: str, value: Value) -> None:
        """As `note`, for a caller that is `writing`."""
        others = [one for one in self.read() if (one.setting, one.target) != (setting, target)]
        values = [*others, HeldValue(setting, target, value, round(time.time(), 3))]
        write_whole(self._path, json.dumps([asdict(one) for one in values], indent=2))

    def restore(self, lost: Iterable[HeldValue], write: Write) -> tuple[list[str], list[str]]:
        """Write values again.

        Returns:
            what was restored and what was not, one line each.
        """
        restored, failed = [], []
        for one in lost:
            try:
                write(one.setting, one.target, one.value)
            except StackError as error:
                failed.append(f"{one.setting} of {one.target}, {one.value}: {error}")
            else:
                restored.append(f"{one.setting} of {one.target}: {one.value}")
        return restored, failed


def lost_with_engine(values: Iterable[HeldValue], replica: str) -> list[HeldValue]:
    """Those that a restart of the replica's engine loses."""
    return [one for one in values if one.target == replica and not _is_of_gateway(one) and _is_live(one)]


def lost_with_gateway(values: Iterable[HeldValue]) -> list[HeldValue]:
    """Those that a restart of the gateway loses."""
    return [one for one in values if _is_of_gateway(one) and _is_live(one)]


def _is_of_gateway(value: HeldValue) -> bool:
    return setting_named(value.setting).layer is Layer.ROUTING


def _is_live(value: HeldValue) -> bool:
    """Values of class C are start arguments, which a restart keeps."""
    return setting_named(value.setting).setting_class is not SettingClass.C
