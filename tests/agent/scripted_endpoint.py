"""An OpenAI-compatible chat endpoint on a real socket that answers from a script and checks what it is sent."""

import asyncio
import contextlib
import json
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

Body = dict[str, object]


@dataclass(frozen=True)
class Turn:
    """One scripted answer.

    `calls` are (name, arguments); arguments that are text are sent as they are. `cut_after` drops the connection after
    that many events; `gap_s` lies between events; `raw` is sent instead of all else; `usage` False leaves it out;
    `metadata` stands where a server names the answer, the model, the call and the error.
    """

    text: str = ""
    calls: tuple[tuple[str, dict | str], ...] = ()
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    delay_s: float = 0.0
    gap_s: float = 0.0
    cut_after: int | None = None
    finish: str | None = None
    raw: str | None = None
    usage: bool = True
    fragment: int = 5
    metadata: str = ""


class ScriptedEndpoint:
    """Serves turns in order; `forever` repeats the last one."""

    def __init__(self, *turns: Turn | Callable[[Body], Turn], forever: bool = False) -> None:
        self.turns = list(turns)
        self.forever = forever
        self.requests: list[Body] = []
        self.keys: list[str] = []
        self.breaches: list[str] = []
        self._ids = 0

    @contextlib.contextmanager
    def serve(self) -> Iterator[str]:
        listener = socket.socket()
        listener.bind(("127.0.0.1", 0))
        app = Starlette(routes=[Route("/v1/chat/completions", self._answer, methods=["POST"])])
        server = uvicorn.Server(uvicorn.Config(app, log_level="critical", lifespan="off", timeout_graceful_shutdown=1))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        finally:
            server.should_exit = True
            thread.join(5)
            listener.close()

    async def _answer(self, request: Request) -> Response:
        body = await request.json()
        self.requests.append(body)
        self.keys.append(request.headers.get("authorization", ""))
        breach = protocol_breach(body)
        if breach:
            self.breaches.append(breach)
            return _error(400, breach)
        if not self.turns:
            return _error(500, "the script has no further turn")
        turn = self.turns[0] if self.forever and len(self.turns) == 1 else self.turns.pop(0)
        turn = turn(body) if callable(turn) else turn
        await asyncio.sleep(turn.delay_s)
        if turn.status != 200:
            return _error(turn.status, turn.metadata or f"scripted {turn.status}", turn.headers)
        if turn.raw is not None:
            return PlainTextResponse(turn.raw, media_type="text/event-stream")
        return StreamingResponse(self._stream(turn, str(body["model"])), media_type="text/event-stream")

    async def _stream(self, turn: Turn, model: str) -> AsyncIterator[str]:
        for number, event in enumerate(self._events(turn, model)):
            if turn.cut_after is not None and number >= turn.cut_after:
                raise ConnectionResetError("cut by the script")
            yield f"data: {json.dumps(event)}\n\n"
            await asyncio.sleep(turn.gap_s)
        yield "data: [DONE]\n\n"

    def _events(self, turn: Turn, model: str) -> Iterator[Body]:
        def event(delta: Body, finish: str | None = None) -> Body:
            choices = [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]
            return {**head, "choices": choices}

        named = turn.metadata or "chatcmpl-1"
        head = {"id": named, "object": "chat.completion.chunk", "created": 1, "model": turn.metadata or model}
        head |= {"system_fingerprint": turn.metadata} if turn.metadata else {}
        yield event({"role": "assistant", "content": ""})
        for piece in _pieces(turn.text, turn.fragment):
            yield event({"content": piece})
        for index, (name, arguments) in enumerate(turn.calls):
            self._ids += 1
            function = {"name": name, "arguments": ""}
            call = {"index": index, "id": f"call_{self._ids}{turn.metadata}", "type": "function", "function": function}
            yield event({"tool_calls": [call]})
            text = arguments if isinstance(arguments, str) else json.dumps(arguments)
            for piece in _pieces(text, turn.fragment):
                yield event({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
        yield event({}, turn.finish or ("tool_calls" if turn.calls else "stop"))
        if turn.usage:
            yield {**head, "choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}}


def protocol_breach(body: Body) -> str | None:
    """What a strict server would refuse: unanswered calls, answers to nothing, arguments that are not JSON text."""
    waiting: set[str] = set()
    known = {tool["function"]["name"] for tool in body.get("tools", [])}
    for message in body["messages"]:
        role = message["role"]
        if waiting and role != "tool":
            return f"tool calls {sorted(waiting)} were not answered"
        if role == "tool":
            if message["tool_call_id"] not in waiting:
                return f"answer to unknown tool call {message['tool_call_id']}"
            waiting.discard(message["tool_call_id"])
        calls = message.get("tool_calls") or []
        waiting |= {call["id"] for call in calls}
        if len(waiting) < len(calls):
            return "two tool calls share an id"
        for call in calls:
            arguments = call["function"]["arguments"]
            if not isinstance(arguments, str) or not isinstance(json.loads(arguments), dict):
                return "arguments must be the text of a JSON object"
    if waiting:
        return f"tool calls {sorted(waiting)} were not answered"
    return None if known or "tools" not in body else "an empty list of tools"


def _pieces(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]


def _error(status: int, message: str, headers: dict[str, str] | None = None) -> Response:
    return JSONResponse({"error": {"message": message, "type": "scripted", "code": status}}, status, headers)
