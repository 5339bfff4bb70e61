"""What would a change do?"""

from typing import Annotated

from pydantic import Field

from harness.action import Action, Forecast, Predicted, Trust
from harness.diagnosis import Finding
from skills.argument import Target, Wanted
from skills.proposal import held
from skills.skill import NotApplicableError, SkillContext, SkillError, skill
from stack.catalogue import SETTINGS, setting_named
from stack.errors import UnknownSettingError
from stack.setting import Setting, Value

NAMES = [setting.name for setting in SETTINGS]
WHAT_IF = "what_if"
DOUBTED_CONFIDENCE = 0.3


@skill(effect="read")
def forecast_change(
    ctx: SkillContext,
    setting: Annotated[str, Field(json_schema_extra={"enum": NAMES})],
    target: Target,
    value: Wanted,
) -> tuple[Finding, ...]:
    """Predict what a change would do to latency, KV use and the share of requests inside the SLO. Nothing is changed.

    Args:
        setting: name of the setting.
        target: name of a replica, or `fleet`.
        value: the value to try: a number, or the name of a choice.
    """
    action = _imagined(_declared(setting), target, value, ctx)
    forecast = ctx.forecast(action)
    if forecast is None or not forecast.effects:
        why = "from what was measured" if forecast is None else f"now: {forecast.note}"
        raise NotApplicableError(f"no sound forecast of {setting} on {target} is possible {why}")
    return (_finding(action, forecast),)


def _declared(setting: str) -> Setting:
    try:
        return setting_named(setting)
    except UnknownSettingError as error:
        raise SkillError(str(error)) from error


def _imagined(declared: Setting, target: str, value: Value, ctx: SkillContext) -> Action:
    problem = declared.problem_with(value)
    if problem:
        raise SkillError(problem)
    return Action(
        setting=declared.name,
        target=target,
        before=held(declared, target, ctx.snapshot),
        after=value,
        cause=WHAT_IF,
        layer=declared.layer,
        reason="asked what it would do",
    )


def _finding(action: Action, forecast: Forecast) -> Finding:
    evidence: dict[str, float | str | None] = {"horizon_s": forecast.horizon_s, "trust": str(forecast.trust)}
    for name, effect in forecast.effects.items():
        evidence |= {f"{name}_before": effect.before, f"{name}_after": effect.after}
        evidence |= {f"{name}_low": effect.low, f"{name}_high": effect.high}
    effects = ", ".join(f"{name} {_words(effect)}" for name, effect in forecast.effects.items())
    doubted = forecast.trust is Trust.DOUBTED
    return Finding(
        layer=action.layer,
        cause="forecast",
        claim=(
            f"{action.setting} on {action.target} {action.before} -> {action.after}, over {forecast.horizon_s:g} s: "
            f"{effects or 'no effect'}{'; doubted' if doubted else ''}. {forecast.note}".strip()
        ),
        severity=0.0,
        confidence=DOUBTED_CONFIDENCE if doubted else 0.8,
        tunable=False,
        target=action.target,
        evidence=evidence,
    )


def _words(effect: Predicted) -> str:
    reserve = f", {effect.reserve}" if effect.reserve else ""
    return f"{effect.before:.3g} to {effect.after:.3g} ({effect.low:.3g} to {effect.high:.3g}{reserve})"
