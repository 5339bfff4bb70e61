"""Every operation that leaves the process is a point at which it may die or fail, counted from one."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import NoReturn

from scripted_stack import Crash, ManualClock, ScriptedStack
from sqlalchemy import Connection

from harness.errors import StoreError
from harness.journal.store import Store
from stack.errors import UnreachableError
from stack.setting import Value
from stack.snapshot import Snapshot


class Seam(Enum):
    """What the process has to do with outside."""

    COMMIT = "commit"
    READ = "read"
    WRITE = "write"
    SNAPSHOT = "snapshot"


class Fault(Enum):
    """What happens at a point."""

    KILL = "kill"
    ONCE = "error once"
    ALWAYS = "error always"
    """From there on every operation at the same seam fails."""


ERRORS: Mapping[Seam, type[Exception]] = {
    Seam.COMMIT: StoreError,
    Seam.READ: UnreachableError,
    Seam.WRITE: UnreachableError,
    Seam.SNAPSHOT: UnreachableError,
}


@dataclass
class Points:
    """Counts points and acts at the Nth; what it has to do there may be anything, as killing the process for good."""

    nth: int | None = None
    fault: Fault = Fault.KILL
    die: Callable[[], NoReturn] | None = None
    count: int = 0
    passed: list[str] = field(default_factory=list)
    broken: Seam | None = None

    def reach(self, seam: Seam, when: str) -> None:
        """One point."""
        self.count += 1
        self.passed.append(f"{when} {seam.value}")
        if self.count == self.nth:
            self._act(seam, when)
        elif seam is self.broken:
            raise ERRORS[seam](f"the {seam.value} fails for good")

    @property
    def reached(self) -> bool:
        """Whether the Nth point was there."""
        return self.nth is not None and self.count >= self.nth

    def _act(self, seam: Seam, when: str) -> None:
        if self.fault is Fault.KILL:
            if self.die is not None:
                self.die()
            raise Crash
        if self.fault is Fault.ALWAYS:
            self.broken = seam
        raise ERRORS[seam](f"{when} {seam.value} number {self.nth} failed")


class FaultyStore:
    """A store whose transactions are points: before they begin and, if they changed something, once committed."""

    def __init__(self, store: Store, points: Points) -> None:
        self._store, self._points = store, points
        self.name = store.name

    @contextmanager
    def begin(self) -> Iterator[Connection]:
        self._points.reach(Seam.COMMIT, "before")
        with self._store.begin() as connection:
            before = _changes(connection)
            yield connection
            changed = _changes(connection) != before
        if changed:
            self._points.reach(Seam.COMMIT, "after")

    def close(self) -> None:
        self._store.close()


def _changes(connection: Connection) -> int:
    found: int = connection.connection.driver_connection.total_changes
    return found


class FaultyStack(ScriptedStack):
    """A stack whose every call is a point, a write two: before it takes effect, and when its reply is on its way."""

    def __init__(self, clock: ManualClock, points: Points) -> None:
        super().__init__(clock)
        self.points = points
        self.seen_as: Callable[[Snapshot], Snapshot] = lambda snapshot: snapshot

    def read(self, setting: str, target: str) -> Value:
        self.points.reach(Seam.READ, "before")
        return super().read(setting, target)

    def write(self, setting: str, target: str, value: Value) -> Value:
        self.points.reach(Seam.WRITE, "before")
        found = super().write(setting, target, value)
        self.points.reach(Seam.WRITE, "after")
        return found

    def snapshot(self, window_s: float) -> Snapshot:
        self.points.reach(Seam.SNAPSHOT, "before")
        return self.seen_as(super().snapshot(window_s))
