"""The supervisor process: one keeper per service, a look every second, until it is told to stop."""

import threading
from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from pathlib import Path

from stack.errors import FlashVectorError, InputError
from stack.local.processes.events import Tell, What
from stack.local.processes.keeper import Keeper
from stack.local.processes.run_files import locked

PERIOD_S = 1.0
LOCK = "watching.lock"


def watch(
    keepers: Sequence[Keeper], folder: Path, tell: Tell, stop: threading.Event, period_s: float = PERIOD_S
) -> None:
    """Keep the services alive until `stop`; they go on without us.

    Each has a thread of its own, so that one which hangs does not keep us from the others.

    Raises:
        InputError: another watcher watches this run folder, or there is nothing to watch.
    """
    if not keepers:
        raise InputError("nothing to watch: the configuration has no process that is ours to start")
    with locked(folder / LOCK, wait_s=0.0) as ours:
        if not ours:
            raise InputError(f"{folder} is watched by another process already")
        with ThreadPoolExecutor(max_workers=len(keepers)) as threads:
            loops = [threads.submit(_loop, keeper, tell, stop, period_s) for keeper in keepers]
            wait(loops, return_when=FIRST_EXCEPTION)
            stop.set()
        for loop in loops:
            loop.result()


def _loop(keeper: Keeper, tell: Tell, stop: threading.Event, period_s: float) -> None:
    said = ""
    while not stop.is_set():
        try:
            keeper.tick()
        except (FlashVectorError, OSError) as error:
            if str(error) != said:
                tell(What.TROUBLE, keeper.service.name, str(error))
            said = str(error)
        else:
            said = ""
        stop.wait(period_s)
