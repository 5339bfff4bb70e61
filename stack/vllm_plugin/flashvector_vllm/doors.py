"""The HTTP doors: what each route does, whichever way vLLM lets us add it."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse

from flashvector_vllm import queue_limit
from flashvector_vllm.access import Access
from flashvector_vllm.change import LARGEST, BadFieldsError, parse_change
from flashvector_vllm.plugin import GET_STATE, NOT_TUNABLE, SET_LIMITS
from flashvector_vllm.tuner import MOST_STEPS
from flashvector_vllm.worker import MEMORY, RELEASE

PREFIX = "/flashvector"
LARGEST_BODY_BYTES = 4096
ANSWER_WITHIN_S = 30.0
"""Longest wait for the engine; it answers between two steps."""

Handler = Callable[[Request], Awaitable[dict[str, Any]]]


class RefusedError(Exception):
    """The request is answered with an error status and these lines by field."""

    def __init__(self, status: int, errors: dict[str, str]) -> None:
        super().__init__(status, errors)
        self.status, self.errors = status, errors


class Doors:
    """Answers every request below PREFIX.

    Args:
        access: who may.
    """

    def __init__(self, access: Access) -> None:
        self._access = access

    async def answer(self, request: Request) -> JSONResponse:
        """Run the route's handler; every error is one JSON object with `errors`."""
        try:
            if refusal := self._access.refusal(request):
                raise RefusedError(403, {"access": refusal})
            return JSONResponse(await handler_of(request)(request))
        except RefusedError as error:
            return JSONResponse({"ok": False, "errors": error.errors}, error.status)


def handler_of(request: Request) -> Handler:
    """The handler of a method and path."""
    path, methods = request.url.path, {method for method, path in ROUTES if path == request.url.path}
    if not methods:
        raise RefusedError(404, {"path": f"expected one of {', '.join(sorted({path for _, path in ROUTES}))}"})
    if request.method not in methods:
        raise RefusedError(405, {"method": f"expected {' or '.join(sorted(methods))}, found {request.method}"})
    return ROUTES[request.method, path]


async def get_limits(request: Request) -> dict[str, Any]:
    """The state without steps."""
    return await _tuned(request, GET_STATE)


async def set_limits(request: Request) -> dict[str, Any]:
    """Change limits; in force from the next step on."""
    document = await body_of(request)
    try:
        parse_change(document)
    except BadFieldsError as error:
        raise RefusedError(400, error.errors) from error
    answer = await _tuned(request, SET_LIMITS, document)
    if not answer["ok"]:
        raise RefusedError(500 if answer["degraded"] else 400, answer["errors"])
    return answer


async def get_steps(request: Request) -> dict[str, Any]:
    """The state with `?last=N` steps: the newest, or the first ones after `?since=STEP`."""
    last = _number(request, "last", 1, MOST_STEPS, default=100)
    return await _tuned(request, GET_STATE, last, _number(request, "since", 0, LARGEST, default=-1))


async def get_queue_limit(request: Request) -> dict[str, Any]:
    """The limit on unfinished requests in this API server."""
    return {"ok": True, queue_limit.NAME: _queue_limit(lambda: queue_limit.read(_client(request)))}


async def set_queue_limit(request: Request) -> dict[str, Any]:
    """Change it; counts from the next request on."""
    document = await body_of(request)
    return {"ok": True, queue_limit.NAME: _queue_limit(lambda: queue_limit.write(_client(request), document))}


async def get_memory(request: Request) -> dict[str, Any]:
    """Memory figures of every worker."""
    return {"ok": True, "workers": await _workers(request, MEMORY)}


async def release_memory(request: Request) -> dict[str, Any]:
    """Give cached device memory back, on every worker."""
    return {"ok": True, "workers": await _workers(request, RELEASE)}


ROUTES: dict[tuple[str, str], Handler] = {
    ("GET", f"{PREFIX}/limits"): get_limits,
    ("POST", f"{PREFIX}/limits"): set_limits,
    ("GET", f"{PREFIX}/steps"): get_steps,
    ("GET", f"{PREFIX}/queue_limit"): get_queue_limit,
    ("POST", f"{PREFIX}/queue_limit"): set_queue_limit,
    ("GET", f"{PREFIX}/memory"): get_memory,
    ("POST", f"{PREFIX}/memory/release"): release_memory,
}


async def body_of(request: Request) -> Any:
    """The decoded JSON body, of limited size."""
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > LARGEST_BODY_BYTES:
            raise RefusedError(413, {"body": f"expected at most {LARGEST_BODY_BYTES} bytes, found more"})
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise RefusedError(400, {"body": f"expected JSON, found something else: {str(error)[:120]}"}) from error


def _queue_limit(action: Callable[[], int | None]) -> int | None:
    try:
        return action()
    except queue_limit.UnavailableError as error:
        raise RefusedError(501, {queue_limit.NAME: str(error)}) from error
    except BadFieldsError as error:
        raise RefusedError(400, error.errors) from error


def _number(request: Request, name: str, low: int, high: int, default: int) -> int:
    text = request.query_params.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdecimal() and len(text) < 12 and low <= int(text) <= high):
        raise RefusedError(400, {name: f"expected a whole number from {low} to {high}, found {text[:60]!r}"})
    return int(text)


def _client(request: Request) -> Any:
    client = getattr(request.app.state, "engine_client", None)
    if client is None:
        raise RefusedError(503, {"engine": "this server has no engine (yet)"})
    return client


async def _tuned(request: Request, method: str, *arguments: Any) -> dict[str, Any]:
    answer = await _answered(_client(request).engine_core.call_utility_async(method, *arguments))
    if NOT_TUNABLE in answer:
        raise RefusedError(501, {"engine": answer[NOT_TUNABLE]})
    return dict(answer)


async def _workers(request: Request, method: str) -> list[dict[str, Any]]:
    """Call one of our two worker methods; no other name can get here."""
    client = _client(request)
    if not client.vllm_config.parallel_config.worker_extension_cls:
        raise RefusedError(501, {"engine": "expected --worker-extension-cls flashvector_vllm.worker.MemoryExtension"})
    return list(await _answered(client.collective_rpc(method)))


async def _answered(call: Awaitable[Any]) -> Any:
    """Wait for the engine. The call itself is never cancelled: vLLM still expects its answer."""
    try:
        return await asyncio.wait_for(asyncio.shield(asyncio.ensure_future(call)), ANSWER_WITHIN_S)
    except TimeoutError as error:
        raise RefusedError(
            504, {"engine": f"no answer within {ANSWER_WITHIN_S:g} s; the change may still happen"}
        ) from error
    except Exception as error:  # vLLM's own errors share no class
        raise RefusedError(503, {"engine": f"{type(error).__name__}: {str(error)[:200]}"}) from error
