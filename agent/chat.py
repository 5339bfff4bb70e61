"""The conversation: with a model it streams and calls read skills, without one it answers from what is known."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

import prompts
from agent.account import fleet_text, missing_text, problems_text, slo_text, window_text
from agent.chat_context import ChatContext
from agent.chat_tools import REQUEST_CHANGE, chat_tools
from agent.completion import ModelError
from agent.dialogue import Dialogue
from agent.events import AnswerText, Degraded, Event, SkillCalled, Speaker
from agent.plain_chat import plain_answer, proposal_text
from agent.prediction import predicted
from agent.quoting import quoted, shown, spoken
from agent.usage import Limits
from harness.action import Action
from harness.role import Role

REMEMBERED = 6
"""Questions and answers of a conversation that are told to the model again."""
LONGEST_SAID = 4000
"""Characters of a question, and of an answer that is told again."""


@dataclass(frozen=True)
class Exchange:
    """A question and its answer, and whose question it was."""

    question: str
    answer: str
    by: str = "operator"
    role: Role = Role.OPERATOR


@dataclass(frozen=True)
class Chat:
    """Answers one question at a time.

    Attributes:
        speaker: who answers without a model, for example `search, no LLM configured`.
        model: None when no LLM is configured.
        timeout_s: longest silence of the server.
        must_call: see `agent.dialogue.Dialogue`.
    """

    speaker: str
    model: BaseChatModel | None = None
    limits: Limits = field(default_factory=Limits)
    timeout_s: float = 30.0
    must_call: bool = False

    def answer(self, text: str, context: ChatContext, past: Sequence[Exchange] = ()) -> Iterator[Event]:
        """Events that answer `text`; a model that fails is named, and the answer then comes from the diagnosis."""
        if self.model is None:
            yield Speaker(self.speaker)
            yield from plain_answer(text, context)
            return
        yield Speaker("llm")
        try:
            yield from self._with_model(self.model, text, context, past)
        except ModelError as error:
            yield Degraded(str(error))
            yield Speaker("search, the LLM failed")
            yield AnswerText(f"\n(LLM: {error}. Answered from the diagnosis instead.)\n")
            yield from plain_answer(text, context)

    def _with_model(
        self, model: BaseChatModel, text: str, context: ChatContext, past: Sequence[Exchange]
    ) -> Iterator[Event]:
        endings = frozenset({REQUEST_CHANGE})
        tools = chat_tools(context)
        dialogue = Dialogue(model, tools, endings, self.limits, self.timeout_s, must_call=self.must_call)
        for event in dialogue.run(chat_messages(text, context, past)):
            match event:
                case AnswerText(text=piece):
                    yield AnswerText(shown(piece))
                case SkillCalled():
                    yield replace(event, arguments=quoted(event.arguments))
        if dialogue.ending is not None and isinstance(dialogue.ending.result, Action):
            yield from _propose(dialogue.ending.result, context)


def _propose(action: Action, context: ChatContext) -> Iterator[Event]:
    told = replace(action, forecast=context.planning.forecast(action), tainted=True)
    proposed = context.propose(told)
    yield proposed
    yield AnswerText(f"\n{predicted(told.forecast)}\n{proposal_text(proposed)}")


def chat_messages(text: str, context: ChatContext, past: Sequence[Exchange]) -> list[BaseMessage]:
    """What the model is told: the situation, the last exchanges and the question."""
    planning = context.planning
    situation = prompts.render(
        "chat",
        role=context.role,
        mode=planning.mode,
        slo=slo_text(planning.skills.slo),
        enabled=", ".join(sorted(planning.skills.enabled)) or "none",
        fleet=fleet_text(planning.skills.snapshot),
        window=window_text(planning.diagnosis.window_s),
        diagnosis=problems_text(planning.diagnosis),
        missing=missing_text(planning.diagnosis),
        memory=context.changes,
    )
    messages: list[BaseMessage] = [SystemMessage(f"{prompts.render('system')}\n\n{situation}")]
    for exchange in past[-REMEMBERED:]:
        messages += [
            HumanMessage(spoken(exchange.question, LONGEST_SAID)),
            AIMessage(spoken(exchange.answer, LONGEST_SAID)),
        ]
    return [*messages, HumanMessage(spoken(text, LONGEST_SAID))]
