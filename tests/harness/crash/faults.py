"""The faults of the matrix: how each begins, which operations meet it, and what that means for an action.

What an attribute says of a fault follows from what the fault is, not from what the harness makes of it: a write that is
lost is not made, metrics that are blind prove nothing. test_fault_matrix derives the promised endings from them.
"""

import math
import os
import resource
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from enum import Enum
from typing import NoReturn

from blindness import BLIND
from crash_points import Seam
from crash_world import PRE, Session, World
from scripted_stack import Crash

from harness.journal.journal import Journal
from harness.journal.store import open_store
from stack.errors import RefusedError, UnreachableError

OTHER, CUT_SHORT = 33.0, 64.0
NOBODY = 65534
SENT, REPLY = (Seam.WRITE, "before"), (Seam.WRITE, "after")
CALLS = ((Seam.READ, "before"), SENT, REPLY, (Seam.SNAPSHOT, "before"))


class Left(Enum):
    """What the stack holds then."""

    WRITTEN = "what was written"
    FORMER = "what it held before the change"
    OTHER = "something else"


def nothing(world: World) -> None:
    """Most faults either begin with something, or are met."""


@dataclass(frozen=True)
class Fault:
    """One thing that goes wrong.

    Attributes:
        begin: what happens at once, and how it is made good.
        at: the operations that meet it.
        meet: what happens to them.
        times, lasts_s: how often and how long; without end if not given.
        prevents: whether no change may begin under it.
        undoes: whether a change in force must be taken back because of it; None where that is left open.
        change, undo: what becomes of these writes under it.
        becomes: what becomes of the value in force when it begins.
        silent: whether what the stack holds stays unknown for longer than an undo is tried.
        broken_store: whether it is one of the journal's store, and outlives a restart.
    """

    name: str
    begin: Callable[[World], None] = nothing
    at: tuple[tuple[Seam, str], ...] = ()
    meet: Callable[[World], None] = nothing
    times: float = math.inf
    lasts_s: float = math.inf
    prevents: bool = False
    undoes: bool | None = False
    change: Left = Left.WRITTEN
    undo: Left = Left.WRITTEN
    becomes: Left = Left.WRITTEN
    silent: bool = False
    broken_store: bool = False


# Metrics


def blind(name: str) -> Fault:
    def begin(world: World) -> None:
        world.stack.seen_as = BLIND[name]

    return Fault(f"metrics: {name}", begin, prevents=True, undoes=True)


def jump_back(world: World) -> None:
    world.clock.time_s -= 600.0


def jump_ahead(world: World) -> None:
    world.clock.time_s += 3600.0


def silence(world: World) -> NoReturn:
    raise UnreachableError("no answer")


# The stack


def refuse(world: World) -> NoReturn:
    raise RefusedError("refused", world.holds)


def delay(world: World) -> None:
    world.clock.sleep(20.0)


def cut_short(world: World) -> None:
    world.stack.values["routing_weight", "r0"] = CUT_SHORT


def changed_by_somebody(world: World) -> None:
    world.others = world.stack.values["routing_weight", "r0"] = OTHER


def fall_back(world: World) -> None:
    world.stack.values["routing_weight", "r0"] = PRE


# The store


def fill_disk(world: World) -> None:
    """No file can grow, which SQLite meets as a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    world.repairs.callback(resource.setrlimit, resource.RLIMIT_FSIZE, before)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))


def lock(world: World) -> None:
    holder = sqlite3.connect(world.path, isolation_level=None)
    world.repairs.callback(holder.close)
    holder.execute("BEGIN EXCLUSIVE")


def write_protect(world: World) -> None:
    """The file's rights; root, who has them all, becomes another user for as long."""
    for path, rights in ((world.path.parent, 0o755), (world.path, 0o444)):
        world.repairs.callback(path.chmod, path.stat().st_mode)
        path.chmod(rights)
    if os.geteuid() == 0:
        world.repairs.callback(os.seteuid, 0)
        os.seteuid(NOBODY)


def corrupt(world: World) -> None:
    sound = world.path.read_bytes()
    world.repairs.callback(world.path.write_bytes, sound)
    world.path.write_bytes(b"\xff" * len(sound))


def take_away(world: World) -> None:
    away = world.path.with_suffix(".away")
    world.path.rename(away)
    world.repairs.callback(away.replace, world.path)


def broken_store(name: str, begin: Callable[[World], None]) -> Fault:
    return Fault(f"store: {name}", begin, prevents=True, undoes=True, change=Left.FORMER, broken_store=True)


# The process, its lease, and people


def die(world: World) -> NoReturn:
    raise Crash


def take_over(world: World) -> None:
    """Another session, which took this one for dead."""
    Session.begin(world).store.close()


def stop(world: World) -> None:
    with closing(open_store(world.path)) as store:
        Journal(store).freeze("stopped by olga", by="olga", now_s=world.clock.now_s(), halt=True)


def interruption(name: str, begin: Callable[[World], None]) -> Fault:
    return Fault(name, begin, prevents=True, undoes=True, change=Left.FORMER)


def lost(name: str, meet: Callable[[World], None], times: float = math.inf) -> Fault:
    undo = Left.FORMER if times > 1 else Left.WRITTEN
    return Fault(name, at=(SENT,), meet=meet, times=times, change=Left.FORMER, undo=undo)


def quiet(name: str, lasts_s: float) -> Fault:
    for_good = lasts_s == math.inf
    return Fault(
        name,
        at=CALLS,
        meet=silence,
        lasts_s=lasts_s,
        prevents=True,
        undoes=for_good,
        silent=for_good,
        change=Left.FORMER,
    )


FAULTS = (
    blind("stale facts"),
    blind("NaN everywhere"),
    blind("two sources under one name"),
    blind("empty"),
    Fault("metrics: no answer", at=((Seam.SNAPSHOT, "before"),), meet=silence, prevents=True, undoes=True),
    Fault("clock: 10 min back", jump_back, prevents=True, undoes=None),  # the time passes again, and may be measured
    Fault("clock: 1 h ahead", jump_ahead, prevents=True, undoes=True),  # a gap, so what is in force cannot be judged
    lost("stack: writes refused", refuse),
    lost("stack: one write lost", silence, times=1),
    lost("stack: all writes lost", silence),
    Fault("stack: done, reply lost", at=(REPLY,), meet=silence),
    Fault("stack: slow, 20 s a write", at=(SENT,), meet=delay),
    Fault("stack: another value read back", at=(REPLY,), meet=cut_short, change=Left.OTHER, undo=Left.OTHER),
    Fault("stack: somebody else's value", changed_by_somebody, prevents=True, becomes=Left.OTHER),
    Fault("stack: restarted, value as before", fall_back, becomes=Left.FORMER),
    quiet("stack: silent for 40 s", 40.0),
    quiet("stack: silent for good", math.inf),
    broken_store("disk full", fill_disk),
    broken_store("locked", lock),
    broken_store("read-only", write_protect),
    broken_store("corrupt", corrupt),
    broken_store("vanished", take_away),
    interruption("process killed", die),
    interruption("lease lost", take_over),
    interruption("stop pressed", stop),
)
