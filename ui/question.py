"""A proposal put to the person at the terminal."""

from rich.console import Console
from rich.prompt import Prompt

from agent.session import Pending
from harness.action import Forecast, Predicted, Trust
from harness.approval import Approve, Decision, Edit, Reject
from stack.catalogue import in_words, setting_named
from stack.setting import Value

WHO = "operator"
FIGURES = (
    ("slo_share", "requests inside the SLO", 100.0, "{:.0f} %"),
    ("finished_per_s", "finished", 1.0, "{:.0f} per s"),
    ("e2e_p99_s", "P99 of whole requests", 1.0, "{:.1f} s"),
    ("ttft_p99_s", "P99 to first token", 1.0, "{:.1f} s"),
)
"""Name of the effect, what people call it, factor and format."""


def ask(console: Console, pending: Pending) -> Decision:
    """Show what would be done and what is predicted, and return the answer."""
    action = pending.action
    change = f"{action.setting} on {action.target}: {in_words(action.before)} -> {in_words(action.after)}"
    console.print(f"\nProposal {pending.id}: {change}", style="bold", markup=False)
    console.print(action.reason, markup=False)
    console.print(predicted(action.forecast), style="dim", markup=False)
    while True:
        answer = Prompt.ask("[b]a[/b]pprove, [b]e[/b]dit or [b]r[/b]eject", console=console, choices=["a", "e", "r"])
        if answer == "a":
            return Approve(by=WHO)
        if answer == "r":
            return Reject(by=WHO)
        value = _value(console, action.setting)
        if value is not None:
            return Edit(by=WHO, after=value)


def predicted(forecast: Forecast | None) -> str:
    """What the change is predicted to do, in the figures people judge by."""
    if forecast is None:
        return "No forecast is possible now."
    if not forecast.effects:
        return f"{forecast.note[:1].upper()}{forecast.note[1:]}."
    told = [
        f"{label} {_figures(effect, factor, form)}"
        for name, label, factor, form in FIGURES
        if (effect := forecast.effects.get(name)) is not None
    ]
    doubt = f" Not to be relied on: {forecast.note}." if forecast.trust is Trust.DOUBTED else ""
    return f"Predicted for the next {forecast.horizon_s:g} s: {', '.join(told)}.{doubt}"


def _figures(effect: Predicted, factor: float, form: str) -> str:
    """Without and with the change, the 80 % interval, and what is to be said beside them."""
    before, after, low, high = (form.format(factor * x) for x in (effect.before, effect.after, effect.low, effect.high))
    return f"{before} -> {after} ({low} to {high}{', ' if effect.reserve else ''}{effect.reserve})"


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
