"""A program: changes in processes of their own that are killed by SIGKILL at every point, and the same for recoveries.

Run as `sigkill_sweep.py FOLDER HELPS`; its output is one JSON object. Processes are forked, so none has to import.
"""

import json
import os
import signal
import sys
from pathlib import Path
from typing import NoReturn

sys.path.append(str(Path(__file__).parents[1]))

from crash_ending import heal
from crash_points import Points
from crash_world import Session, World, live, prepared

from harness.policy import Policy


def killed(world: World, nth: int, *, change: bool) -> bool:
    """Whether a process with a session on `world` dies at its Nth point; `world` then holds what it left behind."""
    child = os.fork()
    if child == 0:
        run(world, nth, change=change)
    _, status = os.waitpid(child, 0)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0:
        return False
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL, f"process ended with status {status}"
    load(world)
    return True


def run(world: World, nth: int, *, change: bool) -> NoReturn:
    """What the process does; the stack's values lie in a file, written when the stack takes them."""

    def die() -> NoReturn:
        keep(world)
        os.kill(os.getpid(), signal.SIGKILL)
        raise SystemExit("a killed process goes on")

    world.stack.after_write = lambda: keep(world)
    world.break_at(Points(nth, die=die))
    tasks = (Session.change, Session.finish) if change else (Session.finish,)
    os._exit(0 if live(world, *tasks) else 3)


def keep(world: World) -> None:
    """The stack's own memory."""
    values = [[setting, target, value] for (setting, target), value in world.stack.values.items()]
    held = {"values": values, "writes": world.stack.writes, "seen": world.seen, "time_s": world.clock.time_s}
    unfinished = world.path.with_suffix(".new")
    unfinished.write_text(json.dumps(held))
    unfinished.replace(world.path.with_suffix(".json"))


def load(world: World) -> None:
    """The stack as it is after a process has died."""
    held = json.loads(world.path.with_suffix(".json").read_text())
    world.stack.values = {(setting, target): value for setting, target, value in held["values"]}
    world.stack.writes = [tuple(write) for write in held["writes"]]
    world.seen = [tuple(line) for line in held["seen"]]
    world.clock.time_s = held["time_s"]


def sweep(folder: Path, helps: float) -> dict[str, object]:
    """Every point of the change, and from each of them every eighth point of the recovery."""
    world, endings, kills, nth = prepared(folder / "journal.db", Policy.load(), helps), set(), 0, 0
    while True:
        nth += 1
        broken = world.copy_to(folder / f"{nth}.db")
        if not killed(broken, nth, change=True):
            return {"points": nth - 1, "kills": kills, "endings": sorted(endings)}
        kills += 1
        for again in range(1 + nth % 8, 1000, 8):
            twice = broken.copy_to(folder / f"{nth}-{again}.db")
            if not killed(twice, again, change=False):
                break
            kills += 1
            endings |= {str(record.state) for record in heal(twice)}
        endings |= {str(record.state) for record in heal(broken)}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(sweep(Path(sys.argv[1]), float(sys.argv[2]))))
