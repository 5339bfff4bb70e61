"""`flashvector chat`: the conversation in the terminal."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.prompt import Prompt

from agent.session import Session
from agent.settings import Settings
from agent.wiring import live_session, simulated_session
from stack.errors import UnreachableError
from ui.answer import print_answer
from ui.decision import decided
from ui.serve_command import look_after
from ui.shown import Shown

WELCOME = (
    "Ask about the stack (why is P99 high? what did you change?), or type: "
    "wait, approve NUMBER, reject NUMBER, help, quit."
)
CYCLES_PER_WAIT = 4


def chat(
    config: Annotated[Path | None, typer.Option("-c", "--config", help="flashvector.toml; defaults if absent.")] = None,
    fault: Annotated[list[str] | None, typer.Option(help="NAME@SECONDS in the simulated stack.")] = None,
    after: Annotated[float, typer.Option(min=1, max=240, help="Minutes that have passed when you sit down.")] = 10.0,
    ask: Annotated[str | None, typer.Option(help="Ask this one question and leave.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the simulated stack.")] = 0,
) -> None:
    """Talk to the agent: it explains, and proposes; changes still pass gate and approval.

    With a stack described in the configuration the talk is about that stack and the loop runs meanwhile, as in serve;
    one question (--ask) only looks, so that it can be put beside a running serve. Otherwise the stack is simulated.
    """
    settings = Settings.load(config=config)
    console = Console()
    if settings.stack is not None:
        _about_live_stack(settings, console, ask)
        return
    faults = tuple(fault) if fault else ("slow_replica@300",)
    with console.status(f"The simulated stack lives through {after:g} minutes"):
        session = simulated_session(settings, traffic="steady", load=0.6, faults=faults, minutes=240.0, seed=seed)
        while session.elapsed_s < after * 60:
            session.cycle()
    if ask is not None:
        print_answer(console, session.ask(ask))
        return
    console.print(WELCOME, style="dim")
    shown = Shown(console)
    shown.whatever_is_new(session)
    while (question := _question(console)) is not None:
        words = question.strip().lower()
        if words == "wait":
            _wait(session, console, shown)
        elif words == "help":
            console.print(WELCOME, style="dim")
        elif not decided(session, console, words, shown) and words:
            print_answer(console, session.ask(question))
            shown.whatever_is_new(session)


def _about_live_stack(settings: Settings, console: Console, question: str | None) -> None:
    if question is None:
        look_after(settings, console)
        return
    onlooker = settings.looking().model_copy(update={"store_path": None, "store_url": None})
    with live_session(onlooker) as session, console.status("Looking at the stack"):
        report = session.cycle()
        if report.blind:
            raise UnreachableError(report.blind)
        answer = tuple(session.ask(question))
    print_answer(console, iter(answer))


def _question(console: Console) -> str | None:
    try:
        text = Prompt.ask("[bold]you[/bold]", console=console)
    except (EOFError, KeyboardInterrupt, RuntimeError):
        return None
    return None if text.strip().lower() in {"quit", "exit"} else text


def _wait(session: Session, console: Console, shown: Shown) -> None:
    for _ in range(CYCLES_PER_WAIT):
        report = session.cycle()
    console.print(f"{session.elapsed_s / 60:.0f} min: {report.summary}", markup=False)
    shown.whatever_is_new(session)
