"""A proposal put to the person at the terminal."""

from rich.console import Console
from rich.prompt import Prompt

from agent.prediction import predicted
from agent.session import Pending
from harness.approval import Approve, Decision, Edit, Reject
from stack.catalogue import in_words, setting_named
from stack.setting import Value

WHO = "operator"


def show(console: Console, pending: Pending) -> None:
    """What would be done, why, and what is predicted."""
    action = pending.action
    change = f"{action.setting} on {action.target}: {in_words(action.before)} -> {in_words(action.after)}"
    console.print(f"\nProposal {pending.id}: {change}", style="bold", markup=False)
    console.print(action.reason, markup=False)
    console.print(predicted(action.forecast), style="dim", markup=False)


def ask(console: Console, pending: Pending) -> Decision:
    """Show a proposal and return the answer."""
    show(console, pending)
    setting = pending.action.setting
    while True:
        answer = Prompt.ask("[b]a[/b]pprove, [b]e[/b]dit or [b]r[/b]eject", console=console, choices=["a", "e", "r"])
        if answer == "a":
            return Approve(by=WHO, digest=pending.digest)
        if answer == "r":
            return Reject(by=WHO)
        value = _value(console, setting)
        if value is not None:
            return Edit(by=WHO, digest=pending.digest, after=value)


def _value(console: Console, name: str) -> Value | None:
    """Another value for a setting; None when the person thinks better of it."""
    declared = setting_named(name)
    known = ", ".join(declared.choices) or f"{declared.low:g} to {declared.high:g}"
    while text := Prompt.ask(f"new value in {declared.unit} ({known}; empty goes back)", console=console, default=""):
        value: Value = text if declared.choices else _number(text)
        problem = declared.problem_with(value)
        if problem is None:
            return value
        console.print(problem, markup=False)
    return None


def _number(text: str) -> Value:
    try:
        return float(text)
    except ValueError:
        return text
