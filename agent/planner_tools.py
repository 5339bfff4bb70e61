"""The tools only a planner has: search for a value, and two ways to end without a change."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated

from langchain_core.tools import BaseTool, StructuredTool
from pydantic import Field

from agent.account import considered_text
from agent.planner import Considered, PlanContext
from agent.search_planner import search
from agent.worth import score_of
from harness.action import Action
from harness.diagnosis import Finding
from harness.verdict import Ruling
from stack.errors import InputError

NOT_TUNABLE = "not_tunable"
NO_CHANGE = "no_change"

Number = Annotated[int, Field(ge=1, description="Number of the problem in the diagnosis, from 1.")]
Reason = Annotated[str, Field(max_length=500, description="Why, in one sentence with the numbers that decided it.")]
WhomToAsk = Annotated[str, Field(max_length=200, description="Who can act, and what to ask of them.")]


@dataclass(frozen=True)
class OutOfReach:
    """The model says that a problem is not tunable."""

    finding: Finding
    reason: str
    ask: str


@dataclass(frozen=True)
class NoChange:
    """The model says that nothing should be done now."""

    reason: str


def planner_tools(context: PlanContext, considered: list[Considered]) -> dict[str, BaseTool]:
    """The three tools by name; candidates that `search_values` looks at are added to `considered`."""

    def search_values(problem: Number) -> str:
        """Try values of the enabled settings against one problem; sorted by predicted gain, with the gate's ruling.

        Use it before proposing, and propose one of the values marked ok.
        """
        found: list[Considered] = []
        search(_problem(context, problem), context, found)
        considered.extend(found)
        return considered_text(sorted(found, key=lambda item: (not item.kept, -score_of(item.action))))

    def not_tunable(problem: Number, reason: Reason, ask: WhomToAsk) -> tuple[str, OutOfReach]:
        """End: the cause of this problem is out of reach of every setting (hardware, network, client, proxy, code)."""
        return "noted", OutOfReach(_problem(context, problem), reason, ask)

    def no_change(reason: Reason) -> tuple[str, NoChange]:
        """End: nothing should be changed now (nothing is wrong, it mends itself, or the evidence is thin)."""
        return "noted", NoChange(reason)

    tools = [_tool(search_values), _tool(not_tunable, ends=True), _tool(no_change, ends=True)]
    return {tool.name: tool for tool in tools}


def gated(tool: BaseTool, context: PlanContext) -> BaseTool:
    """The same tool; its proposal is marked as a model's, carries a forecast, and is refused if the gate denies it."""

    def call(**arguments: object) -> tuple[str, object]:
        answer = tool.invoke({"type": "tool_call", "id": tool.name, "name": tool.name, "args": arguments})
        action = answer.artifact
        if not isinstance(action, Action):
            raise InputError(str(answer.content))
        action = replace(action, forecast=context.forecast(action), tainted=True)
        verdict = context.check(action)
        if verdict.ruling is Ruling.DENY:
            raise InputError(f"the gate denies it: {verdict.hits[0].rule}: {verdict.hits[0].detail}")
        return str(answer.content), action

    return StructuredTool(
        name=tool.name,
        description=tool.description,
        args_schema=tool.args_schema or {},
        func=call,
        response_format="content_and_artifact",
    )


def _tool(function: Callable[..., object], *, ends: bool = False) -> BaseTool:
    return StructuredTool.from_function(
        function,
        description=" ".join((function.__doc__ or "").split()),
        response_format="content_and_artifact" if ends else "content",
    )


def _problem(context: PlanContext, number: int) -> Finding:
    problems = context.diagnosis.problems
    if not 1 <= number <= len(problems):
        raise InputError(f"problem: expected 1 to {len(problems)}, found {number}")
    return problems[number - 1]
