"""`flashvector demo`: a small story on the simulated stack, live in the terminal."""

import sys
import time
from typing import Annotated

import typer
from rich.console import Console
from rich.live import Live
from rich.prompt import Prompt

from agent.session import Pending
from agent.settings import Settings
from agent.wiring import simulated_session
from harness.approval import Approve, Decision, Edit, Reject
from harness.mode import Mode
from stack.catalogue import setting_named
from ui.live_view import LiveView
from ui.report import value_text

LOAD = 0.6


def demo(
    fault: Annotated[str, typer.Option(help="What goes wrong, NAME@SECONDS.")] = "slow_replica@240",
    minutes: Annotated[float, typer.Option(min=1, max=240, help="Length of the story in stack time.")] = 20.0,
    speed: Annotated[float, typer.Option(min=1, max=10000, help="Stack seconds per second of yours.")] = 30.0,
    auto: Annotated[bool, typer.Option("--auto", help="Let the loop act by itself instead of asking you.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same story.")] = 7,
) -> None:
    """Watch a healthy fleet get into trouble, and decide on what the agent proposes. No GPU, LLM or network is used."""
    asks = sys.stdin.isatty() and not auto
    settings = Settings.load(mode=Mode.APPROVE if asks else Mode.AUTO)
    console = Console()
    with console.status("Building a simulated fleet of four H100 replicas"):
        session = simulated_session(settings, traffic="steady", load=LOAD, faults=(fault,), minutes=minutes, seed=seed)
    if not asks:
        console.print("Nobody can be asked here, so the loop acts by itself (class A settings only).", style="dim")
    view = LiveView(session.started_s)
    with Live(console=console, refresh_per_second=8, transient=False) as live:
        while session.elapsed_s < minutes * 60:
            started = time.monotonic()
            before_s = session.elapsed_s
            view.add(session.cycle(), session.elapsed_s)
            live.update(view.render(), refresh=True)
            for pending in session.pending() if asks else ():
                live.stop()
                session.decide(pending.id, ask(console, pending))
                live.start()
            pause_s = (session.elapsed_s - before_s) / speed - (time.monotonic() - started)
            time.sleep(max(0.0, pause_s))
    session.finish()
    console.print(view.ending(session.episodes()))


def ask(console: Console, pending: Pending) -> Decision:
    """Put one proposal to the person at the terminal."""
    action = pending.action
    console.print(
        f"\nProposal: {action.setting} on {action.target}: {value_text(action.before)} -> {value_text(action.after)}",
        style="bold",
        markup=False,
    )
    console.print(action.reason, markup=False)
    answer = Prompt.ask("approve, edit or reject", console=console, choices=["a", "e", "r"], default="a")
    if answer == "r":
        return Reject(by="operator")
    if answer == "e":
        return Edit(by="operator", after=_value(console, pending))
    return Approve(by="operator")


def _value(console: Console, pending: Pending) -> float | str:
    declaration = setting_named(pending.action.setting)
    while True:
        text = Prompt.ask(f"new value in {declaration.unit}", console=console)
        value: float | str = text
        if not declaration.choices:
            try:
                value = float(text)
            except ValueError:
                console.print(f"expected a number, found {text!r}", markup=False)
                continue
        problem = declaration.problem_with(value)
        if problem is None:
            return value
        console.print(problem, markup=False)
