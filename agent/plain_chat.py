"""Answers without a language model: from the diagnosis, the journal, the forecast and the gate."""

from collections.abc import Iterator

from agent.account import (
    action_text,
    considered_text,
    missing_text,
    problems_text,
    value_text,
    window_text,
)
from agent.chat_context import ChatContext
from agent.events import AnswerText, Event, Proposed
from agent.hypothesis import requested
from agent.planner import Considered
from agent.prediction import predicted
from agent.question import (
    AboutChanges,
    AboutMissing,
    AboutProblems,
    AboutSetting,
    Unclear,
    WhatIf,
    understand,
)
from agent.search_planner import rivals, search
from harness.verdict import Ruling, Verdict
from stack.errors import InputError
from stack.setting import Setting
from stack.snapshot import FLEET, Signal

HELP = (
    "Ask: why is P99 high? what is the bottleneck? what did you change? what is missing? "
    "what would running_request_cap 64 on REPLICA do? or say: set routing_weight of REPLICA to 50."
)
_LATENCIES = {
    "TTFT P99": Signal.TTFT_P99_S,
    "mean token time": Signal.ITL_MEAN_S,
    "whole requests P99": Signal.E2E_P99_S,
}


def plain_answer(text: str, context: ChatContext) -> Iterator[Event]:
    """Events that answer `text`."""
    match understand(text, context.planning.skills.snapshot.replicas):
        case AboutProblems():
            yield AnswerText(_problems(context))
        case AboutChanges():
            yield AnswerText(context.changes)
        case AboutMissing():
            yield AnswerText(f"Missing signals and what they cost:\n{missing_text(context.planning.diagnosis)}")
        case AboutSetting(setting=setting):
            yield AnswerText(_setting(setting, context))
        case WhatIf() as wish:
            yield from _what_if(wish, context)
        case Unclear(why=why) if why:
            yield AnswerText(f"{why[0].upper()}{why[1:]}.")
        case _:
            yield AnswerText(f"I did not understand. {HELP}")


def _problems(context: ChatContext) -> str:
    diagnosis = context.planning.diagnosis
    if not context.planning.skills.snapshot.scrapes:
        return f"Nothing could be read, so nothing is known:\n{missing_text(diagnosis)}"
    window = window_text(diagnosis.window_s)
    parts = [_latency(context)]
    if diagnosis.healthy:
        parts.append(f"Nothing needs attention over the last {window}.")
    else:
        parts.append(f"Best explanation first, over the last {window}:")
    parts.append(problems_text(diagnosis))
    parts.append(_next(context))
    return "\n".join(part for part in parts if part)


def _latency(context: ChatContext) -> str:
    snapshot, slo = context.planning.skills.snapshot, context.planning.skills.slo
    limits = slo.limits_s(snapshot.value(Signal.PROMPT_TOKENS_MEAN) or 0.0)
    parts = []
    for name, signal in _LATENCIES.items():
        value, limit = snapshot.value(signal), limits[signal]
        if value is not None:
            share = "" if limit is None else f" of {limit:.3g} s promised ({'above' if value > limit else 'within'})"
            parts.append(f"{name} {value:.3g} s{share}")
    return f"Now: {', '.join(parts)}." if parts else "P99 is not known: no latency was measured in this window."


def _next(context: ChatContext) -> str:
    """What could be done about the first problem, without doing it."""
    problems, tunable = context.planning.diagnosis.problems, rivals(context.planning)
    if not problems:
        return ""
    if not tunable:
        return f"Not tunable here. {problems[0].advice}".strip()
    considered: list[Considered] = []
    best = next(iter(search(tunable[0], context.planning, considered)), None)
    if best is not None:
        return f"Could be done: {action_text(best)}. {predicted(best.forecast)}"
    return f"No change is worth making now:\n{considered_text(considered)}"


def _setting(setting: Setting, context: ChatContext) -> str:
    held = context.planning.skills.snapshot.settings.get(setting.name, {})
    now = ", ".join(f"{target} {value_text(value)}" for target, value in sorted(held.items())) or "not known"
    span = ", ".join(setting.choices) or f"{value_text(setting.low)} to {value_text(setting.high)} {setting.unit}"
    allowed = "may" if setting.name in context.planning.skills.enabled else "may not (it is not enabled)"
    return (
        f"{setting.name} ({setting.layer}, class {setting.setting_class}): {span}; now {now}. The agent {allowed} "
        f"change it, by {setting.mechanism}. To see an effect first: what would {setting.name} VALUE do?"
    )


def _what_if(wish: WhatIf, context: ChatContext) -> Iterator[Event]:
    snapshot = context.planning.skills.snapshot
    try:
        action = requested(wish.setting, wish.target, wish.value, snapshot, context.user)
    except InputError as error:
        yield AnswerText(f"That cannot be tried: {error}. {_where(wish, context)}".rstrip())
        return
    action = action.with_forecast(context.planning.forecast(action))
    effect = f"{action_text(action)}. {predicted(action.forecast)}"
    if wish.wanted and context.role.may_ask_for_changes:
        proposed = context.propose(action)
        yield proposed
        yield AnswerText(f"{effect}\n{proposal_text(proposed)}")
        return
    verdict = context.planning.check(action)
    why = f" A {context.role} cannot ask for changes." if wish.wanted else ""
    yield AnswerText(f"{effect}\n{verdict_text(verdict)} Nothing was changed.{why}")


def _where(wish: WhatIf, context: ChatContext) -> str:
    replicas = ", ".join(sorted(context.planning.skills.snapshot.replicas))
    return f"Replicas are {replicas}." if wish.target == FLEET and replicas else ""


def verdict_text(verdict: Verdict) -> str:
    """The gate's answer with the rules that did not simply allow."""
    rules = "; ".join(f"{hit.rule}: {hit.detail}" for hit in verdict.hits) or "every rule allows it"
    return f"The gate would {verdict.ruling}: {rules}."


def proposal_text(proposed: Proposed) -> str:
    """What became of a change that was asked for."""
    if proposed.approval_id is None and proposed.verdict.ruling is not Ruling.DENY:
        return "It was recorded; shadow mode never acts."
    if proposed.approval_id is None:
        return f"It was not accepted. {verdict_text(proposed.verdict)}"
    return f"It waits for an approval as number {proposed.approval_id}; nothing has been changed yet."
