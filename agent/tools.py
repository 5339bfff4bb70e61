"""Skills as LangChain tools; the only module that knows both."""

from langchain_core.tools import BaseTool, StructuredTool

from agent.account import action_text, finding_text, forecast_text
from harness.action import Action
from skills import SKILLS
from skills.skill import Result, Skill, SkillContext

NOTHING_FOUND = "nothing found: no finding, which is not the same as healthy when signals are missing"
PROPOSES = "Ends by proposing this change; it is not made by calling this."


def skill_tools(context: SkillContext) -> dict[str, BaseTool]:
    """Every skill as a tool over `context`, by name."""
    return {skill.name: _tool(skill, context) for skill in SKILLS}


def read_tools(context: SkillContext) -> dict[str, BaseTool]:
    """The skills that read, by name."""
    return {skill.name: _tool(skill, context) for skill in SKILLS if skill.effect == "read"}


def proposals() -> frozenset[str]:
    """Names of the skills that propose."""
    return frozenset(skill.name for skill in SKILLS if skill.effect == "propose")


def _tool(skill: Skill, context: SkillContext) -> BaseTool:
    def call(**arguments: object) -> tuple[str, Result]:
        result = skill(context, **arguments)
        return result_text(result), result

    ending = f" {PROPOSES}" if skill.effect == "propose" else ""
    return StructuredTool(
        name=skill.name,
        description=f"{skill.description}{ending}",
        args_schema=skill.arguments,
        func=call,
        response_format="content_and_artifact",
    )


def result_text(result: Result) -> str:
    """What a model reads of a skill's result."""
    if isinstance(result, Action):
        return f"proposed: {action_text(result)}; {forecast_text(result.forecast)}"
    return "\n".join(finding_text(finding) for finding in result) or NOTHING_FOUND
