"""`flashvector demo`: a small story on the simulated stack, live in the terminal."""

import sys
import time
from typing import Annotated

import typer
from rich.console import Console
from rich.live import Live

from agent.session import Pending, Session
from agent.settings import Settings
from agent.wiring import simulated_session
from harness.errors import TransitionError
from harness.mode import Mode
from ui.interruption import interruption
from ui.live_view import LiveView
from ui.question import ask

LOAD = 0.6


def demo(
    fault: Annotated[str, typer.Option(help="What goes wrong, NAME@SECONDS.")] = "slow_replica@240",
    minutes: Annotated[float, typer.Option(min=1, max=240, help="Length of the story in stack time.")] = 25.0,
    speed: Annotated[float, typer.Option(min=1, max=10000, help="Stack seconds per second of yours.")] = 30.0,
    auto: Annotated[bool, typer.Option("--auto", help="Let the loop act by itself instead of asking you.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same story.")] = 7,
) -> None:
    """Watch a healthy fleet get into trouble, and decide on what the agent proposes. No GPU, LLM or network is used."""
    asks = sys.stdin is not None and sys.stdin.isatty() and not auto
    settings = Settings.load(mode=Mode.APPROVE if asks else Mode.AUTO)
    console = Console()
    with console.status("Building a simulated fleet of four H100 replicas"):
        session = simulated_session(settings, traffic="steady", load=LOAD, faults=(fault,), minutes=minutes, seed=seed)
    if not asks:
        console.print("Nobody is asked here, so the loop acts by itself (class A settings only).", style="dim")
    view = LiveView(session.started_s)
    try:
        told = _tell(session, view, console, minutes * 60, speed, asks)
    except KeyboardInterrupt:
        told = False
    if not told:
        session.stop()
        console.print("Stopped; what was not yet proved is undone.")
    session.finish()
    console.print(view.ending(session.episodes()))


def _tell(session: Session, view: LiveView, console: Console, length_s: float, speed: float, asks: bool) -> bool:
    """Let the story happen, stopping for questions; False when the person had enough of it."""
    while session.elapsed_s < length_s:
        with Live(console=console, refresh_per_second=8, transient=True) as live, interruption() as stop:
            while session.elapsed_s < length_s and not stop.asked and not (asks and session.pending()):
                started, before_s = time.monotonic(), session.elapsed_s
                view.add(session.cycle(), session.elapsed_s)
                live.update(view.render(), refresh=True)
                time.sleep(max(0.0, (session.elapsed_s - before_s) / speed - (time.monotonic() - started)))
        console.print(view.render())
        if stop.asked:
            return False
        for pending in session.pending() if asks else ():
            _decide(session, pending, console)
    return True


def _decide(session: Session, pending: Pending, console: Console) -> None:
    try:
        session.decide(pending.id, ask(console, pending))
    except TransitionError as error:
        console.print(str(error), markup=False)
