"""A bounded dialogue with a model: it calls tools until one of them ends it, it speaks, or a limit is reached."""

import json
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import ValidationError

from agent.completion import Call, Completion, Model, ModelError, complete, tokens_of
from agent.events import AnswerText, SkillCalled
from agent.quoting import marked, quoted
from agent.usage import Limits, Usage
from stack.errors import FlashVectorError

LONGEST_RESULT = 6000
CUT = "your answer was cut at its longest length, before the arguments were whole; be shorter"


@dataclass(frozen=True)
class Ending:
    """The tool that ended the dialogue and what it returned."""

    name: str
    result: object


@dataclass
class Dialogue:
    """One dialogue; run it once.

    Attributes:
        tools: what the model may call, by name.
        endings: names of those that end the dialogue when they succeed.
        must_call: the model has to call a tool, by the server's force: in every turn where a tool has to end the
            dialogue, otherwise in the first. For small models, which never call one by themselves; one call a turn,
            because with no end to the list they do not find one.
        nudge: said once when the model speaks without having called an ending; empty if speaking is how it ends.
        timeout_s: longest silence of the server.
        ending: how it ended; None when it ended by speaking.
        text: everything the model has said.
    """

    model: BaseChatModel
    tools: Mapping[str, BaseTool]
    endings: frozenset[str]
    limits: Limits
    timeout_s: float
    nudge: str = ""
    must_call: bool = False
    ending: Ending | None = field(default=None, init=False)
    text: str = field(default="", init=False)
    _calls: int = field(default=0, init=False)
    _tokens: int = field(default=0, init=False)
    _started_s: float = field(default_factory=monotonic, init=False)

    @property
    def usage(self) -> Usage:
        """What was spent so far."""
        return Usage(self._calls, monotonic() - self._started_s, self._tokens)

    def run(self, messages: Sequence[BaseMessage]) -> Iterator[AnswerText | SkillCalled]:
        """Events as they happen.

        Raises:
            ModelError: no usable answer, or a limit was reached before the end.
        """
        history, nudged = list(messages), not self.nudge
        while self.ending is None:
            completion = yield from self._ask(history)
            history.append(completion.message())
            if completion.calls:
                yield from self._answer_all(completion, history)
            elif nudged:
                return
            else:
                history.append(HumanMessage(self.nudge))
                nudged = True

    def _ask(self, history: list[BaseMessage]) -> Generator[AnswerText, None, Completion]:
        if self._tokens + tokens_of(history) > self.limits.tokens:
            raise ModelError(f"the budget of {self.limits.tokens} tokens is spent")
        deadline_s = self._started_s + self.limits.seconds
        for piece in complete(self._bound(), history, deadline_s=deadline_s, timeout_s=self.timeout_s):
            if isinstance(piece, Completion):
                self._tokens += piece.tokens
                return piece
            self.text += piece
            yield AnswerText(piece)
        raise ModelError("the answer had no end")

    def _bound(self) -> Model:
        tools = list(self.tools.values())
        if not self.must_call or (self._calls > 0 and not self.nudge):
            return self.model.bind_tools(tools)
        only = [strict(tool) for tool in tools]
        return self.model.bind_tools(only, tool_choice="required", parallel_tool_calls=False)

    def _answer_all(self, completion: Completion, history: list[BaseMessage]) -> Iterator[SkillCalled]:
        """Answer every call, whatever becomes of it: an unanswered one makes the whole history invalid."""
        endings = [call for call in completion.calls if call.name in self.endings]
        for call in completion.calls:
            started_s = monotonic()
            crowded = len(endings) > 1 and call in endings
            message = _refusal(call, "call exactly one ending") if crowded else self._answer(call, completion.cut)
            history.append(message)
            if call.name in self.endings and message.status == "success":
                self.ending = Ending(call.name, message.artifact)
            yield SkillCalled(call.name, _arguments(call), monotonic() - started_s, str(message.content))

    def _answer(self, call: Call, cut: bool) -> ToolMessage:
        self._calls += 1
        if self._calls > self.limits.calls:
            raise ModelError(f"the budget of {self.limits.calls} skill calls is spent")
        if call.name not in self.tools:
            return _refusal(call, f"no skill {call.name}; there are {', '.join(sorted(self.tools))}")
        if call.arguments is None:
            return _refusal(call, CUT if cut else "the arguments are not a JSON object")
        try:
            return _message(call, self.tools[call.name])
        except ValidationError as error:
            return _refusal(call, _complaint(error))
        except FlashVectorError as error:
            return _refusal(call, quoted(error))


def strict(tool: BaseTool) -> dict[str, Any]:
    """The tool's schema with the order to keep to it: without it a server may hold a model to the name alone."""
    schema = convert_to_openai_tool(tool)
    return {**schema, "function": {**schema["function"], "strict": True}}


def _message(call: Call, tool: BaseTool) -> ToolMessage:
    answer = tool.invoke({"type": "tool_call", "id": call.id, "name": call.name, "args": call.arguments or {}})
    if not isinstance(answer, ToolMessage):
        raise TypeError(f"tool {call.name} returned {type(answer).__name__}, expected a ToolMessage")
    return answer.model_copy(update={"content": marked(str(answer.content)[:LONGEST_RESULT])})


def _arguments(call: Call) -> str:
    return ", ".join(f"{name}={json.dumps(value)}" for name, value in (call.arguments or {}).items())


def _refusal(call: Call, reason: str) -> ToolMessage:
    return ToolMessage(f"error: {reason}", tool_call_id=call.id, name=call.name, status="error")


def _complaint(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_context=False)[0]
    place = ".".join(str(part) for part in first["loc"])
    return f"{quoted(place)}: {quoted(first['msg'])}, found {quoted(first.get('input'))}"
