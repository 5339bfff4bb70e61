"""One streamed answer of the model, read strictly: what is not a well-formed answer is an error, never repaired."""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from time import monotonic

import openai
from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.tool import tool_call
from langchain_core.runnables import Runnable

from agent.quoting import quoted, sent
from stack.errors import FlashVectorError

CHARACTERS_PER_TOKEN = 4
"""For servers that report no usage; a common rule of thumb for English text and JSON."""
ATTEMPTS = 2
LONGEST_NAME = 64
"""As OpenAI has it, of a tool."""
MOST_CHARACTERS = 200_000
"""Longest answer that is read: a server may forget the limit it was given."""
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")
_JUNK = (ValueError, TypeError, KeyError, IndexError, AttributeError)
_WORTH_ANOTHER_TRY = (openai.APIConnectionError, openai.RateLimitError, openai.InternalServerError)


class ModelError(FlashVectorError):
    """The model gave no usable answer; the text is one line for the operator."""


@dataclass(frozen=True)
class Call:
    """One requested tool call; `arguments` is None when what came was not a JSON object."""

    id: str
    name: str
    arguments: dict[str, object] | None


@dataclass(frozen=True)
class Completion:
    """A whole answer.

    Attributes:
        cut: the server ended it because it had become as long as it may.
    """

    text: str
    calls: tuple[Call, ...]
    tokens: int
    cut: bool = False

    def message(self) -> AIMessage:
        """The answer as history that a strict server accepts: every call has an id and arguments that are an object."""
        calls = [tool_call(name=call.name, args=call.arguments or {}, id=call.id) for call in self.calls]
        return AIMessage(content=self.text, tool_calls=calls)


Model = Runnable[LanguageModelInput, AIMessage]


def complete(
    model: Model, messages: Sequence[BaseMessage], *, deadline_s: float, timeout_s: float
) -> Iterator[str | Completion]:
    """Pieces of text as they arrive, and at the end the whole.

    Args:
        deadline_s: `time.monotonic()` after which the answer is given up.
        timeout_s: longest silence of the server.

    Raises:
        ModelError: no connection, an HTTP error, silence, a cut stream or junk.
    """
    for attempt in range(1, ATTEMPTS + 1):
        spoken = False
        try:
            for piece in _read(model, messages, deadline_s, timeout_s):
                spoken = spoken or isinstance(piece, str)
                yield piece
            return
        except _WORTH_ANOTHER_TRY as error:
            if spoken or attempt == ATTEMPTS or monotonic() >= deadline_s:
                raise ModelError(_said(error)) from error
        except openai.OpenAIError as error:
            raise ModelError(_said(error)) from error
        except _JUNK as error:
            raise ModelError(f"the answer is no chat completion: {quoted(error)}") from error


def tokens_of(messages: Sequence[BaseMessage]) -> int:
    """Estimated tokens of `messages`."""
    return sum(len(str(message.content)) for message in messages) // CHARACTERS_PER_TOKEN


def _read(
    model: Model, messages: Sequence[BaseMessage], deadline_s: float, timeout_s: float
) -> Iterator[str | Completion]:
    left_s = deadline_s - monotonic()
    if left_s <= 0:
        raise ModelError("the time for this answer is spent")
    whole: AIMessageChunk | None = None
    leaving = [message.model_copy(update={"content": sent(str(message.content))}) for message in messages]
    stream = model.stream(leaving, timeout=min(timeout_s, left_s))
    with closing(stream):  # type: ignore[type-var]
        for chunk in stream:
            if monotonic() > deadline_s:
                raise ModelError("the time for this answer is spent")
            if not isinstance(chunk, AIMessageChunk):
                raise TypeError(f"a piece of type {type(chunk).__name__}")
            whole = chunk if whole is None else whole + chunk
            if _written(whole) > MOST_CHARACTERS:
                raise ModelError(f"the answer is longer than {MOST_CHARACTERS} characters")
            if chunk.text:
                yield chunk.text
    if whole is None or not (whole.text or whole.tool_call_chunks):
        raise ValueError("it is empty")
    yield _completion(whole, messages)


def _completion(whole: AIMessageChunk, messages: Sequence[BaseMessage]) -> Completion:
    cut = whole.response_metadata.get("finish_reason") == "length"
    calls = tuple(
        Call(
            f"call_{len(messages)}_{number}",
            _NOT_IN_NAMES.sub("_", part["name"] or "unnamed")[:LONGEST_NAME],
            _object(part["args"] or ("" if cut else "{}")),
        )
        for number, part in enumerate(whole.tool_call_chunks)
    )
    reported = whole.usage_metadata["total_tokens"] if whole.usage_metadata else 0
    written = _written(whole) // CHARACTERS_PER_TOKEN
    tokens = max(reported, written) if reported > 0 else tokens_of(messages) + written
    return Completion(whole.text, calls, tokens, cut)


def _written(whole: AIMessageChunk) -> int:
    """Characters the model has written so far."""
    return sum(len(part["args"] or "") for part in whole.tool_call_chunks) + len(whole.text)


def _object(text: str) -> dict[str, object] | None:
    """Arguments as a JSON object. LangChain would complete a cut `{"value": 12` into a value nobody chose."""
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _said(error: openai.OpenAIError) -> str:
    if isinstance(error, openai.APITimeoutError):
        return "the LLM did not answer in time"
    if isinstance(error, openai.APIStatusError):
        return f"the LLM answered HTTP {error.status_code}: {quoted(error.message)}"
    if isinstance(error, openai.APIConnectionError):
        return f"the LLM cannot be reached or broke off: {quoted(error.message)}"
    return f"the LLM failed: {quoted(error)}"
