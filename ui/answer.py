"""An answer's events, printed as they arrive."""

from collections.abc import Iterable

from rich.console import Console

from agent.events import AnswerText, Event, SkillCalled, Speaker


def print_answer(console: Console, events: Iterable[Event]) -> None:
    """Print who speaks, each skill call on a line of its own, and the text."""
    for event in events:
        match event:
            case Speaker(name=name):
                console.print(f"[{name}]", style="dim", markup=False)
            case SkillCalled(name=name, arguments=arguments, seconds=seconds):
                console.print(f"  {name}({arguments}) took {seconds:.2f} s", style="dim", markup=False)
            case AnswerText(text=text):
                console.print(text, end="", markup=False, highlight=False, soft_wrap=True)
            case _:
                pass
    console.print()
