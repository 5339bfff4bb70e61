"""`flashvector chat`: the conversation in the terminal."""

import re
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.prompt import Prompt

from agent.account import record_text
from agent.session import Session
from agent.settings import Settings
from agent.wiring import simulated_session
from harness.approval import Approve, Reject
from harness.errors import TransitionError
from ui.answer import print_answer
from ui.question import WHO

WELCOME = (
    "Ask about the stack (why is P99 high? what did you change?), or type: "
    "wait, approve NUMBER, reject NUMBER, help, quit."
)
_DECISION = re.compile(r"(approve|reject)\s+#?(\d+)")
CYCLES_PER_WAIT = 4


def chat(
    config: Annotated[Path | None, typer.Option("-c", "--config", help="flashvector.toml; defaults if absent.")] = None,
    fault: Annotated[list[str] | None, typer.Option(help="NAME@SECONDS in the simulated stack.")] = None,
    after: Annotated[float, typer.Option(min=1, max=240, help="Minutes that have passed when you sit down.")] = 10.0,
    ask: Annotated[str | None, typer.Option(help="Ask this one question and leave.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the simulated stack.")] = 0,
) -> None:
    """Talk to the agent on the simulated stack: it explains, and proposes; changes still pass gate and approval."""
    settings = Settings.load(config=config)
    console = Console()
    faults = tuple(fault) if fault else ("slow_replica@300",)
    with console.status(f"The simulated stack lives through {after:g} minutes"):
        session = simulated_session(settings, traffic="steady", load=0.6, faults=faults, minutes=240.0, seed=seed)
        while session.elapsed_s < after * 60:
            session.cycle()
    if ask is not None:
        print_answer(console, session.ask(ask))
        return
    console.print(WELCOME, style="dim")
    while (question := _question(console)) is not None:
        words = question.strip().lower()
        if words == "wait":
            _wait(session, console)
        elif words == "help":
            console.print(WELCOME, style="dim")
        elif decided := _DECISION.fullmatch(words):
            _decide(session, console, decided[1], int(decided[2]))
        elif question.strip():
            print_answer(console, session.ask(question))


def _question(console: Console) -> str | None:
    try:
        text = Prompt.ask("[bold]you[/bold]", console=console)
    except (EOFError, KeyboardInterrupt, RuntimeError):
        return None
    return None if text.strip().lower() in {"quit", "exit"} else text


def _decide(session: Session, console: Console, verb: str, number: int) -> None:
    decision = Approve(by=WHO) if verb == "approve" else Reject(by=WHO)
    try:
        record = session.decide(number, decision)
    except TransitionError as error:
        console.print(str(error), markup=False)
        return
    console.print(f"{record_text(record)}. It is carried out with the next wait.", markup=False)


def _wait(session: Session, console: Console) -> None:
    for _ in range(CYCLES_PER_WAIT):
        report = session.cycle()
    console.print(f"{session.elapsed_s / 60:.0f} min: {report.summary}", markup=False)
