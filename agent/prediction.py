"""A forecast in the figures people judge by."""

from harness.action import Forecast, Predicted, Trust

FIGURES = (
    ("slo_share", "requests inside the SLO", 100.0, "{:.0f} %"),
    ("finished_per_s", "finished", 1.0, "{:.0f} per s"),
    ("e2e_p99_s", "P99 of whole requests", 1.0, "{:.1f} s"),
    ("ttft_p99_s", "P99 to first token", 1.0, "{:.1f} s"),
)
"""Name of the effect, what people call it, factor and format."""


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
    return f"Predicted for the next {forecast.horizon_s:g} s, with 80 % intervals: {', '.join(told)}.{doubt}"


def _figures(effect: Predicted, factor: float, form: str) -> str:
    """Without and with the change, the 80 % interval, and what is to be said beside them."""
    before, after, low, high = (form.format(factor * x) for x in (effect.before, effect.after, effect.low, effect.high))
    return f"{before} -> {after} ({low} to {high}{', ' if effect.reserve else ''}{effect.reserve})"
