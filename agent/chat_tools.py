"""The tools of the conversation: every read skill, and one way to ask for a change in the operator's name."""

from dataclasses import replace
from typing import Any

from langchain_core.tools import BaseTool, StructuredTool
from pydantic import BaseModel, ConfigDict

from agent.account import action_text
from agent.chat_context import ChatContext
from agent.hypothesis import requested
from agent.quoting import quoted
from agent.tools import PROPOSES, read_tools
from harness.action import Action
from stack.catalogue import SETTINGS, setting_named

REQUEST_CHANGE = "request_change"
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "setting": {"type": "string", "enum": [setting.name for setting in SETTINGS]},
        "target": {"type": "string", "maxLength": 120, "description": "Name of a replica, or `fleet` for all."},
        "value": {
            "type": ["number", "string"],
            "maxLength": 60,
            "description": "The value wanted: a number, or the name of a choice.",
        },
    },
    "required": ["setting", "target", "value"],
    "additionalProperties": False,
}


class Wish(BaseModel):
    """Arguments of `request_change`, checked."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)
    setting: str
    target: str
    value: float | str


def chat_tools(context: ChatContext) -> dict[str, BaseTool]:
    """The tools by name. Who may not ask for changes gets none that could."""
    if not context.role.may_ask_for_changes:
        return read_tools(context.planning.skills)

    def request_change(**arguments: object) -> tuple[str, Action]:
        wish = Wish.model_validate(arguments)
        declared, snapshot = setting_named(wish.setting), context.planning.skills.snapshot
        action = requested(declared, wish.target, wish.value, snapshot, context.user)
        # Nobody may read on a card that a person wanted it: they may have pasted a page that did.
        told = replace(action, reason=f"a model's reading of what {quoted(context.user, 60)} said in the conversation")
        return f"proposed: {action_text(told)}", told

    request = StructuredTool(
        name=REQUEST_CHANGE,
        description=f"Put a change the operator explicitly asked for before the safety gate and a person. {PROPOSES}",
        args_schema=SCHEMA,
        func=request_change,
        response_format="content_and_artifact",
    )
    return {**read_tools(context.planning.skills), REQUEST_CHANGE: request}
