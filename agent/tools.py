"""Skills as LangChain tools; the only module that knows both."""

from collections.abc import Collection

from langchain_core.tools import BaseTool, StructuredTool

from agent.account import action_text, finding_text, forecast_text
from harness.action import Action
from skills import SKILLS
from skills.skill import Result, Skill, SkillContext

NOTHING_FOUND = "nothing found by this skill; what it could not measure is unknown, not fine"
PROPOSES = "Ends with this proposal."


def read_tools(context: SkillContext) -> dict[str, BaseTool]:
    """The skills that read, by name."""
    return {skill.name: _tool(skill, context) for skill in SKILLS if skill.effect == "read"}


def propose_tools(context: SkillContext, settings: Collection[str]) -> dict[str, BaseTool]:
    """The skills that propose to change one of `settings`, by name."""
    return {skill.name: _tool(skill, context) for skill in SKILLS if skill.setting in settings}


def _tool(skill: Skill, context: SkillContext) -> BaseTool:
    """The skill checks its arguments itself; LangChain's copy of a pydantic schema would lose the names of choices."""

    def call(**arguments: object) -> tuple[str, Result]:
        result = skill(context, **arguments)
        return result_text(result), result

    ending = f" {PROPOSES}" if skill.effect == "propose" else ""
    return StructuredTool(
        name=skill.name,
        description=f"{skill.description}{ending}",
        args_schema=dict(skill.parameters),
        func=call,
        response_format="content_and_artifact",
    )


def result_text(result: Result) -> str:
    """What a model reads of a skill's result."""
    if isinstance(result, Action):
        return f"proposed: {action_text(result)}; {forecast_text(result.forecast)}"
    return "\n".join(finding_text(finding) for finding in result) or NOTHING_FOUND
