"""The tools of the conversation: every read skill, and one way to ask for a change in the operator's name."""

from typing import Annotated

from langchain_core.tools import BaseTool, StructuredTool
from pydantic import Field

from agent.account import action_text
from agent.chat_context import ChatContext
from agent.hypothesis import requested
from agent.tools import PROPOSES, read_tools
from harness.action import Action
from skills.argument import Target
from stack.catalogue import SETTINGS, setting_named

REQUEST_CHANGE = "request_change"
NAMES = [setting.name for setting in SETTINGS]
Name = Annotated[str, Field(json_schema_extra={"enum": NAMES}, description="Name of the setting.")]
Wanted = Annotated[float | str, Field(description="The value wanted: a number, or the name of a choice.")]


def chat_tools(context: ChatContext) -> dict[str, BaseTool]:
    """The tools by name."""

    def request_change(
        setting: Name,
        target: Annotated[Target, Field(description="Name of a replica, or `fleet` for all.")],
        value: Wanted,
    ) -> tuple[str, Action]:
        """Put a change the operator explicitly asked for before the safety gate and a person."""
        action = requested(setting_named(setting), target, value, context.planning.skills.snapshot, context.user)
        return f"proposed: {action_text(action)}", action

    request = StructuredTool.from_function(request_change, response_format="content_and_artifact")
    request.description = f"{request.description} {PROPOSES}"
    return {**read_tools(context.planning.skills), REQUEST_CHANGE: request}
