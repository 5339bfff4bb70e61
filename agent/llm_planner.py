"""The planner with a language model: it reads through skills and ends with one proposal or a reason for none."""

from dataclasses import dataclass, field, replace

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

import prompts
from agent.account import fleet_text, missing_text, problems_text, slo_text, window_text
from agent.completion import ModelError
from agent.dialogue import Dialogue
from agent.persistence import Trouble, trouble_of
from agent.planner import Considered, Plan, PlanContext
from agent.planner_tools import NO_CHANGE, NOT_TUNABLE, NoChange, OutOfReach, gated, planner_tools
from agent.quoting import quoted
from agent.search_planner import SearchPlanner
from agent.tools import propose_tools, read_tools
from agent.usage import Limits, Usage
from harness.action import Action
from skills.candidates import candidates

ASK_AGAIN_S = 120.0
"""Stack time for which a model's decision to do nothing about the same troubles stands."""
UNVERIFIED = "the model says (unverified): "
NUDGE = "End with exactly one call: a skill that proposes, not_tunable or no_change."


@dataclass
class LlmPlanner:
    """Chooses by asking a model, which never sees a way to act. A model that fails is replaced by search, openly.

    Attributes:
        timeout_s: longest silence of the server.
        must_call: see `agent.dialogue.Dialogue`.
    """

    model: BaseChatModel
    name: str = "llm"
    limits: Limits = field(default_factory=Limits)
    timeout_s: float = 30.0
    must_call: bool = False
    _declined: tuple[frozenset[Trouble], float, Plan] | None = field(default=None, init=False)

    def plan(self, context: PlanContext) -> Plan:
        """What the model ended with, or what search chooses when the model gave nothing usable."""
        lasting = context.persistence.lasting(context.diagnosis.problems)
        if not lasting:
            return Plan(planner=self.name, reason="no problem has lasted long enough; the model was not asked")
        troubles, now_s = frozenset(map(trouble_of, lasting)), context.diagnosis.time_s or 0.0
        if self._declined is not None and self._declined[0] == troubles and now_s < self._declined[1] + ASK_AGAIN_S:
            return replace(self._declined[2], usage=Usage())
        plan = self._ask(context)
        if plan.degraded:
            instead = SearchPlanner(f"search, the {self.name} failed").plan(context)
            return replace(instead, degraded=plan.degraded, usage=plan.usage)
        self._declined = None if plan.action is not None else (troubles, now_s, plan)
        return plan

    def _ask(self, context: PlanContext) -> Plan:
        considered: list[Considered] = []
        propose = propose_tools(context.skills, within_reach(context))
        propose = {name: gated(tool, context) for name, tool in propose.items()}
        tools = {**read_tools(context.skills), **propose, **planner_tools(context, considered)}
        endings = frozenset({NOT_TUNABLE, NO_CHANGE, *propose})
        dialogue = Dialogue(self.model, tools, endings, self.limits, self.timeout_s, NUDGE, self.must_call)
        try:
            for _ in dialogue.run(messages(context, self.limits)):
                pass
        except ModelError as error:
            plan = Plan(planner=self.name, reason="no action: the planner's answer was unusable", degraded=str(error))
        else:
            plan = self._plan(dialogue, context)
        return replace(plan, usage=dialogue.usage, considered=tuple(considered))

    def _plan(self, dialogue: Dialogue, context: PlanContext) -> Plan:
        match dialogue.ending.result if dialogue.ending else None:
            case Action() as action:
                return self._proposal(action, dialogue, context)
            case OutOfReach(finding=finding, reason=reason, ask=ask):
                told = replace(finding, tunable=False, advice=finding.advice or f"{UNVERIFIED}{quoted(ask)}")
                why = f"not tunable; {UNVERIFIED}{quoted(reason, 500)}"
                return Plan(planner=self.name, reason=why, not_tunable=(told,))
            case NoChange(reason=reason):
                return Plan(planner=self.name, reason=f"no change; {UNVERIFIED}{quoted(reason, 500)}")
            case _:
                degraded = "the model spoke without ending in a proposal or a reason for none"
                return Plan(planner=self.name, reason="no action: the planner did not decide", degraded=degraded)

    def _proposal(self, action: Action, dialogue: Dialogue, context: PlanContext) -> Plan:
        """People are shown the finding's own words as the reason; the model's are a comment, marked as unverified."""
        if (action.setting, action.target, action.after) in context.undone:
            return Plan(planner=self.name, reason=f"no action: {action.setting} was undone lately on {action.target}")
        named = [f for f in context.diagnosis.findings if f.cause == action.cause]
        finding = next((f for f in named if f.target == action.target), named[0] if named else None)
        told = replace(
            action,
            reason=action.cause if finding is None else finding.claim,
            comment=quoted(f"{action.reason} {dialogue.text}".strip(), 500),
        )
        return Plan(planner=self.name, reason=told.reason, action=told)


def within_reach(context: PlanContext) -> frozenset[str]:
    """Settings that may help against a lasting problem: the rest would only fill the model's prompt."""
    lasting = context.persistence.lasting(context.diagnosis.problems)
    return frozenset(action.setting for finding in lasting for action in candidates(finding, context.skills))


def messages(context: PlanContext, limits: Limits) -> list[BaseMessage]:
    """What the model is told."""
    plan = prompts.render(
        "plan",
        max_calls=str(limits.calls),
        max_tokens=str(limits.tokens),
        max_seconds=f"{limits.seconds:g}",
        mode=context.mode,
        slo=slo_text(context.skills.slo),
        enabled=", ".join(sorted(within_reach(context))) or "none",
        fleet=fleet_text(context.skills.snapshot),
        window=window_text(context.diagnosis.window_s),
        diagnosis=problems_text(context.diagnosis),
        missing=missing_text(context.diagnosis),
        memory=context.memory or "none",
    )
    return [SystemMessage(prompts.render("system")), HumanMessage(plan)]
